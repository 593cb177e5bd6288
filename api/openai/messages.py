"""The messages of a request, as OpenAI's clients send them: read, taken apart, and freed of the clients' wrappers.

The user's words are stored and remembered; what a client puts around them (passages, its own memories, dates) is
shown to the model for this one message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from api.openai.client_message import ClientMessage, check_lengths, content_of
from api.openai.tool_rounds import earlier_results, left_open, rounds_of
from api.openai.wrappers import documents_apart, unwrap
from services.conversations.speakers import other_speaker
from services.conversations.values import MAX_IMAGES, Image, images_that_fit
from services.errors import InvalidInput
from services.llm.token_estimates import count_tokens
from state.client_tools import BETWEEN_PARTS, ClientRound
from state.turn import EarlierMessage

_ONLY_IMAGES = "🖼"
"""Text of a message that consists of images alone."""
_IMAGE: TypeAdapter[str] = TypeAdapter(Image)


_Spoken = tuple[Literal["user", "assistant"], str, list[str], str]


@dataclass(frozen=True)
class ClientRequest:
    """A client's request, taken apart: the newest message, and what stands around and before it."""

    message: str
    images: list[str]
    attached: list[str]
    instructions: str
    earlier: list[EarlierMessage] = field(default_factory=list)
    speaker: str = ""
    """Name that the newest message gives for its speaker; empty = none."""
    rounds: list[ClientRound] = field(default_factory=list)
    """Calls of the client's tools with their results, as they follow the newest message. The last results are the
    new ones."""
    left_open: UUID | None = None
    """Turn that waits for results of the client's tools, and that the newest message leaves without them."""

    @property
    def names(self) -> list[str]:
        """Return the names of speakers in the messages."""
        return [each for each in (self.speaker, *(one.get("speaker", "") for one in self.earlier)) if each]

    def of_user(self, names: frozenset[str]) -> "ClientRequest":
        """Return the request without the names that are the user's own, so that only other participants are
        named."""
        earlier = without_names_of(names, self.earlier)
        return replace(self, speaker=other_speaker(self.speaker, names), earlier=earlier)


def read_messages(messages: Sequence[ClientMessage], where: str = "messages") -> ClientRequest:
    """Take the messages of a request apart; the last one must be the user's, or results of the client's tools.
    Raises `InvalidInput` if there is no such message, it is empty or too long, or a part is not supported."""
    after = next((n + 1 for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), 0)
    rounds = rounds_of(messages[after:], where, alone=after == 0)
    added = [each for each in messages[after:] if each.role in {"system", "developer"}]
    said, instructions = _read([*messages[:after], *added], where, after - 1)
    if after == 0 and rounds:
        return ClientRequest("", [], [], "\n\n".join(instructions), rounds=rounds)
    if not said or said[-1][0] != "user" or (len(messages) > after + len(added) and not rounds):
        raise InvalidInput(where, "the last message must be the user's, or the result of a tool")
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
    results = earlier_results(messages[: after - 1], where)
    attached = list(dict.fromkeys([*results, *last.attached, *apart.attached, *before]))
    behind = left_open(messages[: after - 1])
    return ClientRequest(text, images, attached, apart.said, _earlier(said), speaker, rounds, behind)


def read_all(messages: Sequence[ClientMessage], where: str) -> list[EarlierMessage]:
    """Return the messages of the user and the assistant in order, without the text that clients put around them.
    Raises `InvalidInput` if a part cannot be read here."""
    return _earlier(_read(messages, where)[0])


def _read(
    messages: Sequence[ClientMessage], where: str, last: int | None = None
) -> tuple[list[_Spoken], list[str]]:
    """Separate the messages of the user and the assistant from the instructions. The `last` message may hold no
    file."""
    check_lengths(messages, where)
    said: list[_Spoken] = []
    instructions: list[str] = []
    begun = ""  # text of an answer before its calls; only the text after them identifies it
    for place, message in enumerate(messages):
        if message.role in {"tool", "function"}:
            continue
        earlier = last is not None and place != last
        text, images = content_of(message.content, f"{where}.{place}.content", tells_of_files=earlier)
        if message.role == "assistant":
            if message.tool_calls:
                begun = BETWEEN_PARTS.join(filter(str.strip, (begun, text)))
            elif answer := text if text.strip() else begun:
                said.append(("assistant", answer, [], ""))
                begun = ""
        elif message.role == "user":
            if begun:
                said.append(("assistant", begun, [], ""))
            said.append(("user", text, images, other_speaker(message.name, frozenset())))
            begun = ""
        elif text.strip():
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
    """Return messages in which only other participants are named as speakers."""
    return [
        EarlierMessage(**{**each, "speaker": other_speaker(each["speaker"], names)}) if "speaker" in each else each
        for each in said
    ]


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
