"""The messages of a request, as OpenAI's clients send them: read, taken apart, and freed of the clients' wrappers.

The user's words are stored and remembered; what a client puts around them (passages, its own memories, dates) is
shown to the model for this one message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from api.openai.wrappers import documents_apart, unwrap
from services.conversations.speakers import other_speaker
from services.conversations.values import MAX_IMAGES, Image, images_that_fit
from services.errors import InvalidInput
from services.llm.token_estimates import count_tokens
from services.transfer.lines import MAX_CONTENT_CHARACTERS
from services.validation import no_nul
from state.turn import EarlierMessage

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGE_PARTS = frozenset({"image_url", "input_image"})
_ONLY_IMAGES = "🖼"
"""The text of a message that has none."""
_IMAGE: TypeAdapter[str] = TypeAdapter(Image)


class ClientMessage(BaseModel):
    """A message of a request. What a tool of the client has said is not read: its tools are not called here."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    """The name of who says it; in the role `user`, another name than the user's is another participant."""


_Spoken = tuple[Literal["user", "assistant"], str, list[str], str]


@dataclass(frozen=True)
class ClientRequest:
    """What a request says: the newest message, and what stands around and before it."""

    message: str
    images: list[str]
    attached: list[str]
    instructions: str
    earlier: list[EarlierMessage] = field(default_factory=list)
    speaker: str = ""
    """The name that the newest message gives; empty = none."""

    @property
    def names(self) -> list[str]:
        """The names that its messages give."""
        return [each for each in (self.speaker, *(one.get("speaker", "") for one in self.earlier)) if each]

    def of_user(self, names: frozenset[str]) -> "ClientRequest":
        """Return it with the names of others alone, without those of the user."""
        earlier = without_names_of(names, self.earlier)
        return replace(self, speaker=other_speaker(self.speaker, names), earlier=earlier)


def check_lengths(messages: Sequence[ClientMessage], where: str) -> None:
    """Look at the lengths of all messages, before anything looks at their text.

    With what a client puts around it a message may be longer than the user's own words.

    Raises:
        InvalidInput: a message is too long.
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


def read_messages(messages: Sequence[ClientMessage], where: str = "messages") -> ClientRequest:
    """Take the messages of a request apart; the last one must be the user's.

    Raises:
        InvalidInput: there is no such message, it is empty or too long, or a part is not supported.
    """
    said, instructions = _read(messages, where)
    if not said or said[-1][0] != "user" or messages[-1].role in {"tool", "function"}:
        raise InvalidInput(where, "the last message must be the user's")
    _, raw, images, speaker = said.pop()
    last = unwrap(raw)
    if last.attached and not last.said and not images:
        raise InvalidInput(where, "the last message holds nothing that the user said; answers are not continued")
    _check_message(last.said, images, where)
    text = last.said if last.said.strip() else _ONLY_IMAGES
    apart = documents_apart("\n\n".join(instructions))
    before = (
        each for role, told, *_ in reversed(said) if role == "user" for each in documents_apart(told).attached
    )
    attached = list(dict.fromkeys([*last.attached, *apart.attached, *before]))
    return ClientRequest(text, images, attached, apart.said, _earlier(said), speaker)


def read_all(messages: Sequence[ClientMessage], where: str) -> list[EarlierMessage]:
    """The messages of user and assistant, in order, without what clients put around them.

    Raises:
        InvalidInput: a part is none that is read here.
    """
    return _earlier(_read(messages, where)[0])


def _read(messages: Sequence[ClientMessage], where: str) -> tuple[list[_Spoken], list[str]]:
    """What user and assistant say, with images, and the instructions."""
    check_lengths(messages, where)
    said: list[_Spoken] = []
    instructions: list[str] = []
    for place, message in enumerate(messages):
        if message.role in {"tool", "function"}:
            continue
        text, images = _content(message.content, f"{where}.{place}.content")
        if message.role == "user":
            said.append(("user", text, images, other_speaker(message.name, frozenset())))
        elif text.strip():  # otherwise an assistant only asks for tools
            if message.role == "assistant":
                said.append(("assistant", text, [], ""))
            else:
                instructions.append(text.strip())
    return said, instructions


def _earlier(said: Sequence[_Spoken]) -> list[EarlierMessage]:
    earlier = []
    for role, text, images, speaker in said:
        content = (unwrap(text).said if role == "user" else text) if text.strip() else ""
        if content or images:
            told = EarlierMessage(role=role, content=content or _ONLY_IMAGES, images=images)
            earlier.append(EarlierMessage(**told, speaker=speaker) if speaker else told)
    return earlier


def without_names_of(names: frozenset[str], said: Sequence[EarlierMessage]) -> list[EarlierMessage]:
    """Return messages of which only those of other participants name who said them."""
    return [
        EarlierMessage(**{**each, "speaker": other_speaker(each["speaker"], names)}) if "speaker" in each else each
        for each in said
    ]


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
