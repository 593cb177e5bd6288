"""The tools that a request brings, in the form of either of OpenAI's APIs. A tool that would have to run at OpenAI
is refused."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.errors import InvalidInput
from state.client_tools import ClientTools

_MOST_TOOLS = 512
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MODES = frozenset({"none", "auto", "required"})
_INSTEAD: Mapping[str, str] = {
    "custom": "send a function whose argument is the text",
    "mcp": "connect the server to this service in its MCP settings, or run it in your client and send functions",
    "file_search": "load the documents into a knowledge base of this service, which searches it by itself",
}
_USUALLY = "send a function of that purpose which your client runs, or leave it out"


def client_tools(
    tools: Sequence[dict[str, Any]] | None,
    choice: str | dict[str, Any] | None = None,
    *,
    parallel: bool | None = None,
    where: str = "tools",
) -> ClientTools | None:
    """Return a request's tools in the form of Chat Completions; None = the model is offered none. Raises
    `InvalidInput` if a tool is not one that a client runs, or the choice names no tool of the request."""
    given = [_function(each, f"{where}.{place}") for place, each in enumerate(tools or ())]
    if len(given) > _MOST_TOOLS:
        raise InvalidInput(where, f"has {len(given)} tools; at most {_MOST_TOOLS} are accepted")
    names = [each["function"]["name"] for each in given]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(where, f"has two tools of the name {twice}")
    chosen, allowed = _choice(choice, names)
    if chosen == "none" or not given:
        return None
    kept = ClientTools(tools=[each for each in given if allowed is None or each["function"]["name"] in allowed])
    if chosen != "auto":
        kept["choice"] = chosen
    if parallel is not None:
        kept["parallel"] = parallel
    return kept


def _function(tool: dict[str, Any], where: str) -> dict[str, Any]:
    kind = tool.get("type")
    if kind != "function":
        instead = _INSTEAD.get(str(kind), _USUALLY)
        raise InvalidInput(where, f"{str(kind)[:64]} is a tool that nobody runs here; {instead}")
    about = tool.get("function", tool)
    name = about.get("name") if isinstance(about, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(where, "a function has a name of 1 to 128 letters, digits and `_.-`")
    if not isinstance(about.get("parameters") or {}, dict):
        raise InvalidInput(where, "the parameters of a function are a JSON schema")
    parts = {
        key: about[key] for key in ("name", "description", "parameters", "strict") if about.get(key) is not None
    }
    return {"type": "function", "function": {"parameters": {"type": "object", "properties": {}}, **parts}}


def _choice(
    choice: str | dict[str, Any] | None, names: Sequence[str]
) -> tuple[str | dict[str, Any], frozenset[str] | None]:
    """Return how the model chooses, and the names of the tools that it may choose from; None = all."""
    if choice is None:
        return "auto", None
    if isinstance(choice, str):
        if choice not in _MODES:
            raise InvalidInput("tool_choice", "must be none, auto, required, or a function")
        if choice == "required" and not names:
            raise InvalidInput("tool_choice", "is required, and the request has no tools")
        return choice, None
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        listed = [_name_in(each) for each in allowed.get("tools") or ()]
        if unknown := [name for name in listed if name not in names]:
            raise InvalidInput("tool_choice", f"allows {unknown[0]}, which is none of the tools")
        return "required" if allowed.get("mode") == "required" else "auto", frozenset(map(str, listed))
    name = _name_in(choice) if choice.get("type") == "function" else None
    if name not in names:
        raise InvalidInput("tool_choice", f"names {name or choice.get('type')}, which is none of the tools")
    return {"type": "function", "function": {"name": name}}, None


def _name_in(choice: Mapping[str, Any]) -> str | None:
    named = choice.get("function", choice)
    return named.get("name") if isinstance(named, Mapping) else None
