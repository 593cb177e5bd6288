"""A message as OpenAI's clients send it, and its parts."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from services.errors import InvalidInput
from services.transfer.lines import MAX_CONTENT_CHARACTERS
from services.validation import no_nul

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGE_PARTS = frozenset({"image_url", "input_image"})


class ClientMessage(BaseModel):
    """A message of a request."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    """The name of who says it; in the role `user`, another name than the user's is another participant."""
    tool_calls: list[dict[str, Any]] | None = None
    """Calls of the client's tools, as Chat Completions has them."""
    tool_call_id: str | None = None
    """The call that a tool's result answers."""
    failed: bool = False
    """Whether the client says that the tool has failed, in a tool's result."""


def check_lengths(messages: Sequence[ClientMessage], where: str) -> None:
    """Check the lengths of all messages before anything reads their text. A message may be longer than the limit
    of the user's own words, because clients add text around them. Raises `InvalidInput` if a message is too long.
    """
    for place, message in enumerate(messages):
        if (size := _length(message)) > MAX_CONTENT_CHARACTERS:
            reason = f"has {size} characters; at most {MAX_CONTENT_CHARACTERS} are accepted in a message"
            raise InvalidInput(f"{where}.{place}.content", reason)


def _length(message: ClientMessage) -> int:
    if message.content is None or isinstance(message.content, str):
        return len(message.content or "")
    texts = (part.get(name) for part in message.content for name in ("text", "refusal"))
    return sum(len(text) for text in texts if isinstance(text, str))


def text_of(message: ClientMessage) -> str:
    """The text of a message, whatever else it holds."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(part["text"]) for part in message.content or [] if part.get("text"))


def holds_files(messages: Sequence[ClientMessage]) -> bool:
    """Whether any message has a part that is neither text nor an image."""
    return any(
        part.get("type") not in _TEXT_PARTS | _IMAGE_PARTS
        for each in messages
        if isinstance(each.content, list)
        for part in each.content
    )


def content_of(
    content: str | Sequence[dict[str, Any]] | None, name: str, *, tells_of_files: bool = False
) -> tuple[str, list[str]]:
    """Text and images of a message's content, and other parts in words where it `tells_of_files`. Raises
    `InvalidInput` if a part is not supported; `name` is the field."""
    if content is None:
        return "", []
    if isinstance(content, str):
        return _storable(content, name), []
    texts, images = [], []
    for part in content:
        kind = part.get("type")
        if kind in _TEXT_PARTS:
            texts.append(str(part.get("text") or part.get("refusal") or ""))
        elif kind in _IMAGE_PARTS:
            address = part.get("image_url")
            images.append(str(address.get("url")) if isinstance(address, dict) else str(address))
        elif tells_of_files:
            texts.append(_in_words(part))
        else:
            raise InvalidInput(name, f"a part of the type {kind!r} is not supported; send text and images")
    return _storable("\n".join(texts), name), images


def _in_words(part: dict[str, Any]) -> str:
    """Describe a part that is not shown to any model: its kind, its name and its address."""
    within = (part.get(key) for key in ("file", "source"))
    about: dict[str, Any] = next((each for each in within if isinstance(each, dict)), {})
    named = (one.get(key) for key in ("filename", "title", "url", "file_url", "file_id") for one in (part, about))
    known = [str(each)[:300] for each in named if isinstance(each, str) and not each.startswith("data:")]
    return f"[{', '.join([str(part.get('type'))[:64], *known])}; not shown]"


def _storable(text: str, name: str) -> str:
    try:
        return no_nul(text)
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None
