"""Requests to `POST /v1/messages`: fields that are used, and fields that are refused."""

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson
from pydantic import ConfigDict, Field

from api.openai.chat_schemas import ModelRequest, TokenCount, answer_form, sampling_of
from api.openai.client_message import ClientMessage
from api.openai.client_tools import client_tools
from services.errors import InvalidInput
from state.client_tools import ClientTools
from state.turn import Sampling

_MOST_MESSAGES = 10_000
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
"""Blocks with thoughts of a model; the service sends its model that model's own thoughts."""
_CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}


class MessagesRequest(ModelRequest):
    """A message, as Anthropic's clients ask for one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "default", "max_tokens": 500, "messages": [{"role": "user", "content": "Hello!"}]}
            ]
        }
    )
    effective = frozenset(("messages", "system", "output_config", "container", "mcp_servers", "thread"))
    parameters: ClassVar[Mapping[str, str]] = {
        "max_tokens": "max_completion_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "stop_sequences": "stop",
    }

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=_MOST_MESSAGES)
    system: str | list[dict[str, Any]] | None = Field(None, description="The instructions of the application.")
    max_tokens: TokenCount = None
    stop_sequences: list[str] | None = None
    top_k: int | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    container: Any = None
    thread: dict[str, Any] | None = None
    mcp_servers: list[dict[str, Any]] | None = None

    @property
    def client_tools(self) -> ClientTools | None:
        """Return the tools that the client runs; None = the model is offered none. Raises `InvalidInput` if a
        tool is not run by clients, or the choice names none of them."""
        choice: str | dict[str, Any] | None = None
        parallel = None
        if isinstance(self.tool_choice, str):
            raise InvalidInput("tool_choice", 'must be a JSON object such as {"type": "auto"}')
        if self.tool_choice is not None:
            kind = str(self.tool_choice.get("type"))
            choice = _CHOICES.get(kind, kind)
            if kind == "tool":
                choice = {"type": "function", "function": {"name": self.tool_choice.get("name")}}
            if self.tool_choice.get("disable_parallel_tool_use") is not None:
                parallel = not self.tool_choice["disable_parallel_tool_use"]
        return client_tools(list(map(_function, self.tools or ())), choice, parallel=parallel)

    def sampling(self, passed: frozenset[str]) -> Sampling:
        """Return the parameters for the model, of those in `passed`. Raises `InvalidInput` if the form of the
        answer is not valid, or the model cannot be asked for it."""
        form = (self.output_config or {}).get("format")
        given = {name: getattr(self, field) for field, name in self.parameters.items()}
        given["response_format"] = answer_form("output_config.format", form, passed)
        return sampling_of(given, passed)

    def refuse_unsupported(self) -> None:
        """Refuse what would change the answer but cannot be done. Raises `InvalidInput` if the request asks for
        such a thing; the error names the field."""
        if self.thread:
            raise InvalidInput("thread", "threads are not kept here; send the whole history, which is recognised")
        for field, given in (("container", self.container), ("mcp_servers", self.mcp_servers)):
            if given:
                raise InvalidInput(field, "is run by nobody here; connect servers in the service's MCP settings")

    def said(self) -> list[ClientMessage]:
        """Return the messages in the form of `/v1`, the instructions first. Raises `InvalidInput` if a block is
        not supported."""
        said: list[ClientMessage] = []
        if self.system:
            said.append(ClientMessage(role="system", content=_text_of_system(self.system)))
        for place, each in enumerate(self.messages):
            said += _messages(each, f"messages.{place}")
        return said


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool in the form of Chat Completions; a tool that Anthropic defines stays as it is."""
    if tool.get("type") not in {None, "custom"}:
        return tool
    names = {"name": "name", "description": "description", "parameters": "input_schema", "strict": "strict"}
    return {"type": "function", "function": {key: tool[name] for key, name in names.items() if name in tool}}


def _text_of_system(system: str | list[dict[str, Any]]) -> str:
    if isinstance(system, str):
        return system
    return "\n\n".join(str(block.get("text") or "") for block in system)


def _messages(message: dict[str, Any], where: str) -> list[ClientMessage]:
    role, content = message.get("role"), message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise InvalidInput(f"{where}.content", "is neither a text nor a list of blocks")
    if role == "system":
        return [ClientMessage(role="system", content=_text_of_system(blocks))]
    if role == "assistant":
        return [_answer(blocks)]
    if role != "user":
        raise InvalidInput(f"{where}.role", "must be user, assistant or system")
    results = [_result(block) for block in blocks if block.get("type") == "tool_result"]
    parts = [_part(block) for block in blocks if block.get("type") != "tool_result"]
    if not results:
        return [ClientMessage(role="user", content=parts)]
    # Text beside results comes from the client, such as its reminders.
    results[-1] = results[-1].model_copy(update={"content": [*(results[-1].content or []), *parts]})
    return results


def _answer(blocks: list[dict[str, Any]]) -> ClientMessage:
    parts = [_part(block) for block in blocks if block.get("type") not in {"tool_use", *_THOUGHTS}]
    calls = [
        {
            "id": block.get("id"),
            "function": {"name": block.get("name"), "arguments": orjson.dumps(block.get("input") or {}).decode()},
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return ClientMessage(role="assistant", content=parts, tool_calls=calls or None)


def _result(block: dict[str, Any]) -> ClientMessage:
    content = block.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return ClientMessage(
        role="tool",
        content=list(map(_part, parts)),
        tool_call_id=str(block.get("tool_use_id") or ""),
        failed=bool(block.get("is_error")),
    )


def _part(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block in the form of `/v1`; an unknown block stays as it is."""
    kind = str(block.get("type"))
    given = block.get("source")
    source: dict[str, Any] = given if isinstance(given, dict) else {}
    if kind == "text":
        return {"type": "text", "text": block.get("text")}
    if kind == "image" and source.get("type") == "base64":
        return {"type": "image_url", "image_url": f"data:{source.get('media_type')};base64,{source.get('data')}"}
    if kind == "image":
        return {"type": "image_url", "image_url": source.get("url")}
    if kind == "document" and source.get("type") == "text":
        return {"type": "text", "text": str(source.get("data") or "")}
    if kind == "search_result":
        texts = [str(each.get("text") or "") for each in block.get("content") or ()]
        found = f"{block.get('title')} <{block.get('source')}>"
        return {"type": "text", "text": "\n".join([found, *texts])}
    return block
