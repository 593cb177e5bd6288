"""The three tools by which a model remembers, forgets and searches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, Field

from anamnesis_client import ClientError, ServiceError
from langchain_anamnesis.clients import Clients, Named, Whose

_RETRIES = 2
_AWAY = "Memory does not answer at the moment: nothing was {done}. Tell the user, and try again later."


class _Remembered(BaseModel):
    text: str = Field(description="A short sentence, in the user's language, understandable alone.")
    replaces: str = Field("", description="In words, what it holds in place of; empty = it is new.")


class _Forgotten(BaseModel):
    what: str = Field(description="What is to go, in words.")
    keep: str = Field("", description="What is to stay of the sentence that also says something else.")
    all: bool = Field(False, description="Whether such sentences go as a whole, and all memories with the words.")


class _Sought(BaseModel):
    query: str


@dataclass(frozen=True)
class _Kind:
    """One of the tools: its request to the service, and what the model is told."""

    name: str
    description: str
    arguments: type[BaseModel]
    path: tuple[str, str]
    done: str
    body: Callable[[Mapping[str, Any]], dict[str, Any]]
    told: Callable[[Mapping[str, Any]], str]


_KINDS = (
    _Kind(
        "remember",
        "Remember a statement or a wish of the user for all conversations.",
        _Remembered,
        ("memory", "remember"),
        "remembered",
        lambda given: {"text": given["text"], "replaces": given.get("replaces", "")},
        lambda found: found["summary"],
    ),
    _Kind(
        "forget",
        "Forget what a description names, because the user asks for it. If it stands in one sentence with "
        "something else, nothing is changed: call it again with `keep` or `all`.",
        _Forgotten,
        ("memory", "forget"),
        "forgotten",
        lambda given: {"what": given["what"], "all": given.get("all", False), "keep": given.get("keep") or None},
        lambda found: "\n".join([found["summary"], *(found.get("also_said") or [])]),
    ),
    _Kind(
        "search_memory",
        "Search what the user said before and what is remembered of them.",
        _Sought,
        ("memory", "prompt"),
        "found",
        lambda given: {"message": given["query"]},
        lambda found: found["text"] or "Nothing was found.",
    ),
)
NAMES = frozenset(each.name for each in _KINDS)


def memory_tools(
    url: str, *, user: Named, key: str | None = None, space: Named | None = None, expert: Named | None = None
) -> list[BaseTool]:
    """Return `remember`, `forget` and `search_memory` for a user; they work with and without an event loop.

    Each name may also be a function of the `ToolRuntime`, so that one agent serves many users. The artifact of a
    message is the id of the operation that changed memory, if there was one. While the service does not answer,
    the model is told so.

    Args:
        url: Address, such as `http://127.0.0.1:8000`.
        user: User whose memory it is.
        key: An API key or a token.
        space: Space of the user in which is remembered and searched.
        expert: Expert who remembers.
    """
    return tools_of(Clients(url, "", key, retries=_RETRIES), Whose(user, space, expert))


def tools_of(clients: Clients, whose: Whose) -> list[BaseTool]:
    """Return the tools over clients, for the user that `whose` names."""
    return [_tool(clients, whose, kind) for kind in _KINDS]


def _tool(clients: Clients, whose: Whose, kind: _Kind) -> BaseTool:
    def request(runtime: Any, given: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
        user, names = whose.names(runtime)
        return ("users", user, *kind.path), {**kind.body(given), **names}

    def call(runtime: ToolRuntime | None = None, **given: Any) -> tuple[str, str | None]:
        path, body = request(runtime, given)
        try:
            return _answer(kind, clients.sync.request("POST", *path, json=body))
        except ClientError as error:
            return _refusal(kind, error), None

    async def acall(runtime: ToolRuntime | None = None, **given: Any) -> tuple[str, str | None]:
        path, body = request(runtime, given)
        try:
            async with clients.one() as client:
                return _answer(kind, await client.request("POST", *path, json=body))
        except ClientError as error:
            return _refusal(kind, error), None

    return StructuredTool.from_function(
        call,
        acall,
        name=kind.name,
        description=kind.description,
        args_schema=kind.arguments,
        response_format="content_and_artifact",
    )


def _answer(kind: _Kind, found: Mapping[str, Any]) -> tuple[str, str | None]:
    return kind.told(found), found.get("operation_id")


def _refusal(kind: _Kind, error: ClientError) -> str:
    """Return what the model is told in place of a result."""
    return error.detail if isinstance(error, ServiceError) else _AWAY.format(done=kind.done)
