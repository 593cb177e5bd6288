"""Kinds of text in a streamed answer, and reasoning that a model writes into it between tags.

The templates of some models open the tag themselves, so that an answer begins with reasoning and has only the
closing tag. If a model is known to do so, nothing before the tag passes as text. Otherwise the tag is ordinary
text, and what was passed on as text stays text. gpt-oss writes channels: `analysis` is reasoning, others are text.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from services.encryption.private_files import replace_file

_NAME = r"(?:[a-z]+:)?(?:think|thinking|thought|reasoning)"
_OPENING = re.compile(rf"\A\s*(?:<{_NAME}>|\[THINK\]|◁think▷)", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_NAME}>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_CHANNEL = re.compile(
    r"\A\s*(?:<\|start\|>assistant)?(?:<\|channel\|>(analysis|commentary|final)\s*(?:<\|constrain\|>\w+)?<\|message\|>"
    r"|(?=<\|channel\|>\w+ to=))"
)
_CHANNEL_UNFINISHED = re.compile(
    r"\A\s*(?:<(?:\|[a-z]{0,10}\|?)?|<\|start\|>[a-z]{0,9}(?:<(?:\|[a-z]{0,8}\|?)?)?"
    r"|(?:<\|start\|>assistant)?<\|channel\|>\w*(?: t?o?|\s*(?:<\|constrain\|>\w*)?(?:<(?:\|[a-z]{0,9}\|?)?)?))\Z"
)
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return)\|>|(?=<\|start\|>assistant|<\|channel\|>[acf])")
_UNFINISHED = re.compile(
    r"(?:[<\[◁]/?[a-z:]{0,20}|<\|(?:[a-z]{0,8}\|?|start\|>[a-z]{0,8}|channel\|>))\Z", re.IGNORECASE
)
"""Beginning of a possible tag at the end of a text."""
_ANY_OPENING = re.compile(rf"<{_NAME}>|\[THINK\]|◁think▷", re.IGNORECASE)
_TO_LEARN = 3
_TO_UNLEARN = 2
_FENCE = "```"

_THINKS_FIRST = re.compile(
    r"(?:^|[-_/:.])(?:r1|qwq|z1|thinking|reasoner|reasoning)(?:$|[-_:.])|(?:^|/)seed-oss", re.IGNORECASE
)


class Refusal(str):
    """Words with which the model declines. A person reads them like text; the message keeps them separate."""

    __slots__ = ()


class Reasoning(str):
    """Thoughts of the model before it answers: never a part of the answer."""

    __slots__ = ()


@dataclass(frozen=True)
class BegunCall:
    """A call of a tool that a model is writing."""

    name: str
    before: tuple[str, ...]
    """Names of the calls that precede it in the same message."""


class CallPiece(str):
    """A piece of the arguments of a tool call: JSON, and no part of the answer's text."""

    call: BegunCall

    @classmethod
    def of(cls, text: str, call: BegunCall) -> "CallPiece":
        piece = cls(text)
        piece.call = call
        return piece


class Said:
    """The text of an answer so far, from its pieces."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def __call__(self, piece: str) -> None:
        """Take the next piece, of any kind."""
        if not isinstance(piece, Reasoning | CallPiece):
            self.pieces.append(piece)

    @property
    def text(self) -> str:
        """The whole text so far."""
        return "".join(self.pieces)


def may_think_first(model: str) -> bool:
    """Whether models of that name usually have a template that opens the tag."""
    return bool(_THINKS_FIRST.search(model))


class ThinkStyles:
    """How the models of one endpoint write reasoning; remembered across starts if there is a file.

    A model is expected to begin with reasoning after several answers in a row with only the closing tag, and no
    longer after some in a row without it. A single answer changes nothing for the next.
    """

    def __init__(self, file: Path | None = None) -> None:
        """Take the file in which it is kept."""
        self._file = file
        self._first: dict[str, bool] = {}
        with suppress(OSError, ValueError):
            kept = json.loads(file.read_bytes()) if file else {}
            self._first = {str(model): first is True for model, first in kept.items()}
        self._otherwise: dict[str, int] = {}
        """Number of answers in a row that contradicted the expectation."""

    def think_first(self, model: str) -> bool:
        """Return whether a model's next answer is expected to begin with reasoning that has no opening tag."""
        return self._first.get(model, may_think_first(model))

    def learn(self, model: str, *, thought_first: bool) -> bool:
        """Note whether an answer began, or seems to have begun, with reasoning that has no opening tag. Returns
        whether this changes the expectation, which then has to be written to the file."""
        expected = self.think_first(model)
        count = 0 if thought_first == expected else self._otherwise.get(model, 0) + 1
        if count >= (_TO_UNLEARN if expected else _TO_LEARN):
            self._first[model], count = thought_first, 0
        self._otherwise[model] = count
        return self.think_first(model) != expected

    def keep(self) -> None:
        """Write the file. If it cannot be written, the expectation is learned again after the next start."""
        if self._file:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._file, json.dumps(self._first).encode())


def looks_thought_first(text: str) -> bool:
    """Whether a text has a closing tag on a line of its own, without an opening one and not in code."""
    closing = _CLOSING.search(text)
    if closing is None or not text[: closing.start()].strip():
        return False
    before, after = text[: closing.start()], text[closing.end() :]
    if before.count(_FENCE) % 2 or _ANY_OPENING.search(before):
        return False
    return before.rstrip(" \t").endswith("\n") or after.lstrip(" \t").startswith("\n")


class ThinkTags:
    """Splits the text of one answer, as it comes, into plain text and `Reasoning`."""

    def __init__(self, *, thinks_first: bool = False) -> None:
        """Take whether the answer is expected to begin with reasoning that has no opening tag."""
        self._state: Literal["start", "held", "inside", "text", "channel"] = "held" if thinks_first else "start"
        self._channel: str | None = None
        """Name of the channel that is being written; None if the answer has no channels."""
        self._waiting = ""
        """Text that may belong to a tag."""
        self._open: list[str] = []
        """Reasoning with its opening tag, which counts as the answer if the closing tag never comes."""
        self.thought_first = False
        self.thinks = False
        """Whether any reasoning has ended."""

    def reasoning_is_apart(self) -> list[str]:
        """Note that reasoning comes in a field of its own, so that all text is answer; return the text that was
        held back."""
        if self._state == "held":
            self._state = "start"
            self._waiting, self._open = "".join(self._open) + self._waiting, []
        return self.feed("") if self._waiting else []

    def feed(self, text: str) -> list[str]:
        """Return the part of the text that is certain so far, in order."""
        if self._state == "text" and not self._waiting:
            return [text]
        self._waiting += text
        return list(self._certain(last=False))

    def end(self, *, cut: bool = False) -> list[str]:
        """Return the rest. Reasoning whose closing tag never came counts as the answer, unless the answer was
        `cut` off."""
        rest = list(self._certain(last=True))
        if self._open and not cut:
            rest.append("".join(self._open))
            self._open = []
        return [piece for piece in rest if piece]

    def _certain(self, *, last: bool) -> Iterator[str]:
        while True:
            before = (self._state, self._waiting)
            match self._state:
                case "start":
                    self._begin(last=last)
                case "text":
                    yield self._waiting
                    self._waiting = ""
                case "channel":
                    yield from self._in_channel(last=last)
                case _:
                    yield from self._reasoning(last=last)
            if (self._state, self._waiting) == before or not self._waiting:
                return

    def _begin(self, *, last: bool) -> None:
        """Look whether the answer, or what follows its reasoning, begins with an opening tag."""
        if found := _CHANNEL.match(self._waiting):
            self._channel = found[1] or "commentary"
            self._state, self._waiting = "channel" if found[1] else "text", self._waiting[found.end() :]
        elif found := _OPENING.match(self._waiting):
            self._state, self._waiting = "inside", self._waiting[found.end() :]
            self._open.append(found[0])
        elif last or not (
            self._waiting.isspace()
            or _UNFINISHED.fullmatch(self._waiting.lstrip())
            or _CHANNEL_UNFINISHED.match(self._waiting)
        ):
            self._state = "text"
            if self.thinks:
                self._waiting = self._waiting.lstrip()

    def _in_channel(self, *, last: bool) -> Iterator[str]:
        ends = _CHANNEL_ENDS.search(self._waiting)
        certain = (
            ends.start() if ends else len(self._waiting) if last else _length_before_unfinished(self._waiting)
        )
        if said := self._waiting[:certain]:
            yield Reasoning(said) if self._channel == "analysis" else said
        self._waiting = self._waiting[ends.end() if ends else certain :]
        if ends:
            self.thinks, self._state = self.thinks or self._channel == "analysis", "start"

    def _reasoning(self, *, last: bool) -> Iterator[str]:
        closing = _CLOSING.search(self._waiting)
        if closing is None:
            certain = len(self._waiting) if last else _length_before_unfinished(self._waiting)
            said, self._waiting = self._waiting[:certain], self._waiting[certain:]
        else:
            said, self._waiting = self._waiting[: closing.start()], self._waiting[closing.end() :]
        shown = said
        if self._state == "held" and not self._open and (opening := _OPENING.match(said)):
            self._state, shown = "inside", said[opening.end() :]  # with its opening tag after all
        if said:
            self._open.append(said)
        if shown:
            yield Reasoning(shown)
        if closing is not None:
            self.thought_first = self.thought_first or self._state == "held"
            self.thinks, self._state = True, "start"
            self._open.clear()


def _length_before_unfinished(text: str) -> int:
    found = _UNFINISHED.search(text)
    return found.start() if found else len(text)
