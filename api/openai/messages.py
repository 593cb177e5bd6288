"""The messages of a request, as OpenAI's clients send them: read, taken apart, and freed of the clients' wrappers.

The user's words are stored and remembered; what a client puts around them (passages, its own memories, dates) is
shown to the model for this one message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from api.openai.wrappers import unwrap
from services.conversations.speakers import other_speaker
from services.conversations.values import MAX_IMAGES, MAX_MESSAGE_CHARACTERS, Image, images_that_fit
from services.errors import InvalidInput
from services.json_levels import shallow_json
from services.llm.token_estimates import count_tokens
from services.transfer.lines import MAX_CONTENT_CHARACTERS
from services.validation import no_nul
from state.client_tools import BETWEEN_PARTS, ClientCall, ClientResult, ClientRound
from state.turn import EarlierMessage

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGE_PARTS = frozenset({"image_url", "input_image"})
_ONLY_IMAGES = "🖼"
"""The text of a message that has none."""
_NO_IMAGE = "[an image, which is not shown]"
_IMAGE: TypeAdapter[str] = TypeAdapter(Image)


class ClientMessage(BaseModel):
    """A message of a request."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    """The name of who says it; in the role `user`, another name than the user's is another participant."""
    tool_calls: list[dict[str, Any]] | None = None
    """Calls of the client's tools, as Chat Completions has them."""
    tool_call_id: str | None = None
    """Of a tool's result: the call that it answers."""
    failed: bool = False
    """Of a tool's result: whether the client says that the tool failed."""


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
    rounds: list[ClientRound] = field(default_factory=list)
    """Calls of the client's tools with their results that follow the newest message; the last ones are new."""

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
    """Take the messages of a request apart; the last one must be the user's, or results of the client's tools.

    Raises:
        InvalidInput: there is no such message, it is empty or too long, or a part is not supported.
    """
    after = next((n + 1 for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), 0)
    rounds = rounds_of(messages[after:], where, alone=after == 0)
    added = [each for each in messages[after:] if each.role in {"system", "developer"}]
    said, instructions = _read([*messages[:after], *added], where)
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
    attached = [*_unanswered(messages[: after - 1], where), *last.attached]
    return ClientRequest(text, images, attached, "\n\n".join(instructions), _earlier(said), speaker, rounds)


def rounds_of(messages: Sequence[ClientMessage], where: str, *, alone: bool = False) -> list[ClientRound]:
    """The calls of the client's tools with their results, as they follow a message; empty if none does.

    Results that stand `alone` need no calls: those are stored.

    Raises:
        InvalidInput: a call has no result, a result no call, or the messages end in something else.
    """
    rounds: list[ClientRound] = []
    for message in messages:
        if message.role == "assistant":
            if not rounds or rounds[-1]["results"]:
                rounds.append(ClientRound(text="", calls=[], results=[]))
            text, _ = _content(message.content, where)
            rounds[-1]["text"] = BETWEEN_PARTS.join(filter(str.strip, (rounds[-1]["text"], text)))
            rounds[-1]["calls"] += [_call(each, where) for each in message.tool_calls or ()]
        elif message.role == "tool":
            if not rounds:
                rounds.append(ClientRound(text="", calls=[], results=[]))
            rounds[-1]["results"].append(_result(message, where))
        elif message.role == "function":
            raise InvalidInput(where, "messages of the role function are not supported; send tools")
    if rounds and not (rounds[-1]["calls"] or rounds[-1]["results"]):
        return []  # an answer
    for each in rounds:
        _check_round(each, where, alone=alone)
    return rounds


def _check_round(each: ClientRound, where: str, *, alone: bool) -> None:
    results = {result["id"] for result in each["results"]}
    calls = {call["id"] for call in each["calls"]}
    if missing := calls - results:
        raise InvalidInput(where, f"the call {min(missing)} has no result; send one for each call of a message")
    if not (alone and not calls) and (unasked := results - calls):
        raise InvalidInput(where, f"the result of {min(unasked)} answers no call of the message before it")


def _call(given: dict[str, Any], where: str) -> ClientCall:
    function = given.get("function")
    function = function if isinstance(function, dict) else {}
    name = function.get("name")
    if not isinstance(name, str) or not isinstance(given.get("id"), str):
        raise InvalidInput(where, "a call of a tool has an id, and a function with a name and arguments")
    try:
        arguments = shallow_json(str(function.get("arguments") or "{}"))
    except ValueError:
        arguments = None
    return ClientCall(id=given["id"], name=name, arguments=arguments if isinstance(arguments, dict) else {})


def _result(message: ClientMessage, where: str) -> ClientResult:
    if not message.tool_call_id:
        raise InvalidInput(where, "the result of a tool names its call in `tool_call_id`")
    text, images = _content(message.content, where)
    text = "\n".join([text, *([_NO_IMAGE] * len(images))]) if images else text
    result = ClientResult(id=message.tool_call_id, content=text)
    return ClientResult(**result, failed=True) if message.failed else result


def _unanswered(messages: Sequence[ClientMessage], where: str) -> list[str]:
    """The results to which the newest message is added before the model has read them."""
    begin = next((n + 1 for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), 0)
    if not messages or messages[-1].role != "tool":
        return []
    rounds = rounds_of(messages[begin:], where)
    names = {call["id"]: call["name"] for each in rounds for call in each["calls"]}
    return [
        f"{names.get(result['id'], 'tool')}: {result['content']}" for each in rounds for result in each["results"]
    ]


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
    begun = ""  # of an answer that goes on behind results of tools
    for place, message in enumerate(messages):
        if message.role in {"tool", "function"}:
            continue
        text, images = _content(message.content, f"{where}.{place}.content")
        if message.role == "assistant":
            begun = BETWEEN_PARTS.join(filter(str.strip, (begun, text)))
            if not message.tool_calls and begun:
                said.append(("assistant", begun, [], ""))
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
