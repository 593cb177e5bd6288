"""Requests to `POST /v1/responses`: fields that are taken, and fields that are refused."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.openai.chat_schemas import ModelRequest, TokenCount, Word, answer_form, sampling_of
from api.openai.client_message import ClientMessage
from services.errors import InvalidInput
from state.turn import Sampling

_MOST_ITEMS = 10_000
_UNREAD = frozenset({"reasoning"})
"""Kinds of input items that are not read. Reasoning is one, because the service sends the model its own."""


_OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


_THOUGHT: dict[str, Any] = {"type": "reasoning"}


def _is_reference(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "item_reference"


class ConversationReference(BaseModel):
    """A conversation by its id."""

    id: str


class TextOptions(BaseModel):
    """The form of the answer."""

    model_config = ConfigDict(strict=True)

    format: dict[str, Any] | None = None
    verbosity: Word = None


class ReasoningOptions(BaseModel):
    """How the model thinks before it answers."""

    model_config = ConfigDict(strict=True)

    effort: Word = None


class ResponseRequest(ModelRequest):
    """A response, as OpenAI's clients ask for one. Parameters of the model are checked and passed on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "default", "input": "Hello!", "user": "u-1"}]}
    )
    holds_messages = "input"
    effective = frozenset(
        ("input", "instructions", "previous_response_id", "conversation", "background", "text", "prompt")
    )
    parameters: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_output_tokens": "max_completion_tokens",
        "reasoning": "reasoning_effort",
    }

    input: str | list[dict[str, Any]] = Field(
        description="The message, or a list of items that ends with the user's."
    )
    instructions: str | None = Field(None, description="As a system message.")
    previous_response_id: str | None = Field(None, description="The response that the message follows.")
    conversation: str | ConversationReference | None = Field(None, description="The conversation it belongs to.")
    background: bool | None = Field(None, description="true: do not wait for the answer.")
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    max_output_tokens: TokenCount = None
    truncation: Literal["auto", "disabled"] | None = None
    prompt: dict[str, Any] | None = None
    include: list[str] | None = None

    @property
    def echo(self) -> dict[str, Any]:
        """Fields that the response repeats."""
        names = (
            *("instructions", "metadata", "previous_response_id", "temperature", "top_p", "max_output_tokens"),
            *_OF_TOOLS,
        )
        given = {name: getattr(self, name) for name in names}
        if self.text is not None and self.text.format is not None:
            given["text"] = {"format": self.text.format}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def kept_echo(self) -> dict[str, Any]:
        """Return the fields that a stored response repeats later: all of them except instructions and tools, which
        are not kept."""
        return {name: value for name, value in self.echo.items() if name not in {"instructions", *_OF_TOOLS}}

    def sampling(self, passed: frozenset[str]) -> Sampling:
        """Return the parameters that reach the model, among those that may. Raises `InvalidInput` if the requested
        form of the answer is not a form, or the model cannot be asked for it."""
        text = self.text or TextOptions()
        given = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_completion_tokens": self.max_output_tokens,
            "reasoning_effort": self.reasoning.effort if self.reasoning else None,
            "verbosity": text.verbosity,
            "response_format": answer_form("text.format", text.format, passed),
        }
        return sampling_of(given, passed)

    def refuse_unsupported(self) -> None:
        """Refuse parameters that would change the answer and are not supported. Raises `InvalidInput`, which names
        the field, if the request has one."""
        if self.conversation is not None and self.previous_response_id is not None:
            raise InvalidInput("previous_response_id", "cannot be sent together with conversation")
        names_one = self.conversation is not None or self.previous_response_id is not None
        if self.store is False and names_one:
            raise InvalidInput("store", "a response of a stored conversation is stored; leave store out")
        if self.store is False and self.background:
            raise InvalidInput("background", "what is not stored cannot be read later; leave store out")
        if self.top_logprobs:
            raise InvalidInput("top_logprobs", "log probabilities are not supported")
        if self.prompt is not None:
            raise InvalidInput("prompt", "stored prompts are not supported; send instructions")

    def references(self) -> list[tuple[str, str]]:
        """Return the places and ids of input items that are named by their ids alone, without items of
        reasoning."""
        given = [] if isinstance(self.input, str) else self.input
        named = [(f"input.{n}", str(each.get("id"))) for n, each in enumerate(given) if _is_reference(each)]
        return [(place, item_id) for place, item_id in named if not item_id.startswith("rs_")]

    def messages(self, referred: Mapping[str, dict[str, Any]]) -> list[ClientMessage]:
        """Return the input as messages, the instructions first. `referred` are the items that the input names by
        their ids. Raises `InvalidInput` if an item is not supported."""
        given = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        whole = [referred.get(str(each.get("id")), _THOUGHT) if _is_reference(each) else each for each in given]
        said = [ClientMessage(role="system", content=self.instructions)] if self.instructions else []
        return [*said, *messages_of_items(whole, "input")]


def messages_of_items(items: list[dict[str, Any]], where: str) -> list[ClientMessage]:
    """Return items that are messages. Raises `InvalidInput` if there are too many, or one is not supported."""
    if len(items) > _MOST_ITEMS:
        raise InvalidInput(where, f"has {len(items)} items; at most {_MOST_ITEMS} are accepted")
    messages: list[ClientMessage] = []
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in _UNREAD:
            continue
        if kind == "function_call":
            _add_call(messages, item)
            continue
        if kind == "function_call_output":
            messages.append(_result(item, f"{where}.{place}"))
            continue
        content = item.get("content")
        fits = kind == "message" and item.get("role") in {"system", "developer", "user", "assistant"}
        is_text = isinstance(content, str)
        if not fits or not (is_text or (isinstance(content, list) and all(isinstance(c, dict) for c in content))):
            raise InvalidInput(f"{where}.{place}", f"an item of the type {kind!r} is not supported; send messages")
        name = item.get("name")
        messages.append(
            ClientMessage(role=item["role"], content=content, name=name if isinstance(name, str) else None)
        )
    return messages


def _add_call(messages: list[ClientMessage], item: dict[str, Any]) -> None:
    """Add a call to the message in which the model makes it."""
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    call = {"id": item.get("call_id"), "function": function}
    if messages and messages[-1].role == "assistant":
        last = messages.pop()
        messages.append(last.model_copy(update={"tool_calls": [*(last.tool_calls or ()), call]}))
    else:
        messages.append(ClientMessage(role="assistant", tool_calls=[call]))


def _result(item: dict[str, Any], where: str) -> ClientMessage:
    output, call_id = item.get("output"), item.get("call_id")
    if not isinstance(call_id, str) or not isinstance(output, str | list):
        raise InvalidInput(where, "the output of a call has a call_id, and an output that is a text or parts")
    return ClientMessage(role="tool", content=output, tool_call_id=call_id)
