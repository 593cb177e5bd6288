"""The messages of a request, as OpenAI's clients send them: read, taken apart, and freed of the clients' wrappers.

The user's words are stored and remembered; what a client puts around them (passages, its own memories, dates) is
shown to the model for this one message.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from services.conversations.values import MAX_IMAGES, MAX_MESSAGE_CHARACTERS, Image, images_that_fit
from services.errors import InvalidInput
from services.llm.token_estimates import count_tokens
from services.validation import no_nul
from state.turn import EarlierMessage

# Documents may contain the marks, so that a wrapper goes on to the last closing one.
_SYSTEM_CONTEXT = re.compile(
    r"<!--\s{0,9}SYSTEM CONTEXT \(NOT PART OF USER QUERY\)\s{0,9}-->.*<!--\s{0,9}END SYSTEM CONTEXT\s{0,9}-->",
    re.DOTALL,
)
_SOURCED_CONTEXT = re.compile(r"<(context|sources)>(?=.*?<source\b).*</\1>", re.DOTALL)
_SOURCE = re.compile(r"<source\b[^>]*\bid=[^>]*>.*</source>", re.DOTALL)
_CLIENT_MEMORY = re.compile(r"<(user_memory|user_memories|memory_context)>.*</\1>", re.DOTALL)
_ATTACHED_FILES = re.compile(r"<attached_files>\s*(?:<file\b[^>]*/>\s*)+</attached_files>")
_WRAPPERS = (_SYSTEM_CONTEXT, _SOURCED_CONTEXT, _SOURCE, _CLIENT_MEMORY, _ATTACHED_FILES)
_TEMPLATE = re.compile(r"\A\s{0,99}###\s{0,9}Task:\s{0,9}\n", re.IGNORECASE)
_QUERY = re.compile(r"<user_query>(?:(?!</?user_query>).)*</user_query>\s*\Z", re.DOTALL)
_CLOSING = ("</context>", "</source>", "</sources>")
_REFERENCES = re.compile(
    r"\A\s{0,99}Please answer the question based on the reference materials\s.*?\n## My question is:\s{0,9}\n"
    r"(?P<query>.*?)\n## Reference Materials:",
    re.DOTALL,
)
"""A question before its passages, as Cherry Studio writes it."""
_DATE_LINE = re.compile(
    r"\A\s*\[?(?:current (?:date|time|date and time|datetime)|today's date|当前时间|当前日期)\s*[:：][^\n]*\n+",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Unwrapped:
    """A user's message, apart from what the client put around it."""

    said: str
    attached: list[str]


def unwrap(text: str) -> Unwrapped:
    """Take the wrappers of known clients off a user's message.

    A message that is nothing else stays whole; except a template for a question that holds none, as it comes when
    an answer is to be continued: there `said` is empty.
    """
    attached: list[str] = []
    said, is_template = text, False
    if references := _REFERENCES.match(text):
        said = references["query"]
        attached += [text[: references.start("query")].strip(), text[references.end("query") :].strip()]
    elif "<" in text:
        if is_template := bool(_TEMPLATE.match(said) and (_SOURCED_CONTEXT.search(said) or _QUERY.search(said))):
            said = _query_of_template(said, attached)
        for pattern in _WRAPPERS:
            if found := pattern.search(said):
                attached.append(found.group().strip())
                said = said[: found.start()] + said[found.end() :]
    if date := _DATE_LINE.match(said):
        attached.append(date.group().strip())
        said = said[date.end() :]
    said = said.strip() if attached else text
    return Unwrapped(said, attached) if said or is_template else Unwrapped(text, [])


def _query_of_template(text: str, attached: list[str]) -> str:
    """Return the user's question in a template that gives the model passages and then the question.

    A question in marks counts only behind the last passage, as passages may contain such marks.
    """
    end = max(text.rfind(mark) + len(mark) for mark in _CLOSING if mark in text) if _has_passages(text) else 0
    query = _QUERY.search(text, end)
    start = query.start() if query else end
    attached.append(text[:start].strip())
    return text[start:].strip().removeprefix("<user_query>").removesuffix("</user_query>").strip()


def _has_passages(text: str) -> bool:
    return any(mark in text for mark in _CLOSING)


_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGE_PARTS = frozenset({"image_url", "input_image"})
_ONLY_IMAGES = "🖼"
"""The text of a message that has none."""
_IMAGE: TypeAdapter[str] = TypeAdapter(Image)


class ClientMessage(BaseModel):
    """A message of a request. What a tool of the client has said is not read: its tools are not called here."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


_Spoken = tuple[Literal["user", "assistant"], str, list[str]]


@dataclass(frozen=True)
class ClientRequest:
    """What a request says: the newest message, and what stands around and before it."""

    message: str
    images: list[str]
    attached: list[str]
    instructions: str
    earlier: list[EarlierMessage] = field(default_factory=list)


def read_messages(messages: Sequence[ClientMessage], where: str = "messages") -> ClientRequest:
    """Take the messages of a request apart; the last one must be the user's.

    Raises:
        InvalidInput: there is no such message, it is empty or too long, or a part is not supported.
    """
    said, instructions = _read(messages, where)
    if not said or said[-1][0] != "user" or messages[-1].role in {"tool", "function"}:
        raise InvalidInput(where, "the last message must be the user's")
    _, raw, images = said.pop()
    last = unwrap(raw)
    if last.attached and not last.said and not images:
        raise InvalidInput(where, "the last message holds nothing that the user said; answers are not continued")
    _check_message(last.said, images, where)
    text = last.said if last.said.strip() else _ONLY_IMAGES
    return ClientRequest(text, images, last.attached, "\n\n".join(instructions), _earlier(said))


def read_all(messages: Sequence[ClientMessage], where: str) -> list[EarlierMessage]:
    """The messages of user and assistant, in order, without what clients put around them.

    Raises:
        InvalidInput: a part is none that is read here.
    """
    return _earlier(_read(messages, where)[0])


def _read(messages: Sequence[ClientMessage], where: str) -> tuple[list[_Spoken], list[str]]:
    """What user and assistant say, with images, and the instructions."""
    said: list[_Spoken] = []
    instructions: list[str] = []
    for place, message in enumerate(messages):
        if message.role in {"tool", "function"}:
            continue
        text, images = _content(message.content, f"{where}.{place}.content")
        if message.role == "user":
            said.append(("user", text, images))
        elif text.strip():  # otherwise an assistant only asks for tools
            if message.role == "assistant":
                said.append(("assistant", text, []))
            else:
                instructions.append(text.strip())
    return said, instructions


def _earlier(said: Sequence[_Spoken]) -> list[EarlierMessage]:
    earlier = []
    for role, text, images in said:
        content = (unwrap(text).said if role == "user" else text) if text.strip() else ""
        if content or images:
            earlier.append(EarlierMessage(role=role, content=content or _ONLY_IMAGES, images=images))
    return earlier


def text_of(message: ClientMessage) -> str:
    """The text of a message, whatever else it holds."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(part["text"]) for part in message.content or [] if part.get("text"))


def cut_to_tokens(text: str, most: int) -> str:
    """Return the beginning of a text, at most `tokens` tokens by the estimate."""
    while (tokens := count_tokens(text)) > most:
        text = text[: max(len(text) * most // tokens, 1) - 1].rstrip()
    return text


def _check_message(text: str, images: Sequence[str], where: str) -> None:
    if not text.strip() and not images:
        raise InvalidInput(where, "the last message is empty")
    if len(text) > MAX_MESSAGE_CHARACTERS:
        reason = f"the last message has {len(text)} characters; at most {MAX_MESSAGE_CHARACTERS} are accepted"
        raise InvalidInput(where, reason)
    if len(images) > MAX_IMAGES:
        raise InvalidInput(where, f"the last message has {len(images)} images; at most {MAX_IMAGES} are accepted")
    try:
        images_that_fit(images)
    except ValueError as error:
        raise InvalidInput(where, f"the images of the last message {error}") from None
    for image in images:
        try:
            _IMAGE.validate_python(image)
        except ValidationError as error:
            reason = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
            raise InvalidInput(where, f"an image of the last message {reason}") from None


def _content(content: str | Sequence[dict[str, Any]] | None, name: str) -> tuple[str, list[str]]:
    """Text and images of a message's content."""
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
        else:
            raise InvalidInput(name, f"a part of the type {kind!r} is not supported; send text and images")
    return _storable("\n".join(texts), name), images


def _storable(text: str, name: str) -> str:
    try:
        return no_nul(text)
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None
