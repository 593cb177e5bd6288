"""The text of a streamed answer: its kinds, and reasoning that a model writes into it between tags.

The templates of some models open the tag themselves, so that an answer begins with reasoning and has only the
closing tag. Where that is known of a model, nothing passes as text before the tag; otherwise the text so far is
retracted when the tag comes.
"""

import re
from collections.abc import Iterator
from typing import Literal

ThinkStyle = Literal["tagged", "closed", "apart"]
"""`tagged` reasoning has both tags, `closed` only the closing one; `apart` there is none in the text."""

_NAME = r"(?:[a-z]+:)?(?:think|thinking|thought|reasoning)"
_OPENING = re.compile(rf"\A\s*(?:<{_NAME}>|\[THINK\]|◁think▷)", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_NAME}>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_UNFINISHED = re.compile(r"[<\[◁]/?[a-z:]{0,20}\Z", re.IGNORECASE)
"""What may become a tag when more text comes."""
_MARK = re.compile(r"[<\[◁]")
"""The beginning of any tag."""
_FENCE = "```"

_THINKS_FIRST = re.compile(
    r"(?:^|[-_/:.])(?:r1|qwq|z1|thinking|reasoner|reasoning)(?:$|[-_:.])|(?:^|/)seed-oss", re.IGNORECASE
)


class Refusal(str):
    """Words with which the model declines. A person reads them like text; the message keeps them separate."""

    __slots__ = ()


class Reasoning(str):
    """What the model thinks before it answers: never a part of the answer."""

    __slots__ = ()


class Retraction(str):
    """Text passed on as the answer which a closing tag has since shown to be reasoning: all of it so far.

    It follows as `Reasoning`."""

    __slots__ = ()


class Said:
    """The text of an answer so far, from its pieces."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def __call__(self, piece: str) -> None:
        """Take the next piece, of any kind."""
        if isinstance(piece, Retraction):
            self.pieces.clear()
        elif not isinstance(piece, Reasoning):
            self.pieces.append(piece)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)


def may_think_first(model: str) -> bool:
    """Whether models of that name usually have a template that opens the tag."""
    return bool(_THINKS_FIRST.search(model))


class ThinkStyles:
    """How models of one endpoint were seen to write reasoning, in this process."""

    def __init__(self) -> None:
        self._styles: dict[str, ThinkStyle] = {}

    def think_first(self, model: str) -> bool:
        """Whether a model's next answer is expected to begin with reasoning without an opening tag."""
        style = self._styles.get(model)
        return may_think_first(model) if style is None else style == "closed"

    def learn(self, model: str, tags: "ThinkTags") -> None:
        """Take the tags of an answer that is complete; a model that thinks first may do without now and then."""
        if self._styles.get(model) != "closed" or tags.style == "tagged":
            self._styles[model] = tags.style


class ThinkTags:
    """Splits the text of one answer, as it comes, into plain text and `Reasoning`."""

    def __init__(self, *, thinks_first: bool = False) -> None:
        """Take whether the answer is expected to begin with reasoning that has no opening tag."""
        self._state: Literal["start", "held", "inside", "text"] = "held" if thinks_first else "start"
        self._waiting = ""
        """Text that may belong to a tag."""
        self._passed: list[str] | None = []
        """Text passed on that a closing tag may still show to be reasoning; None = none can."""
        self._held: list[str] = []
        self.style: ThinkStyle = "apart"

    def reasoning_is_apart(self) -> list[str]:
        """Note that reasoning comes in its own field, so that the text is the answer; return what was held."""
        if self._state == "held":
            self._state = "start"
            self._waiting, self._held = "".join(self._held) + self._waiting, []
        self._passed = None
        return self.feed("") if self._waiting else []

    def feed(self, text: str) -> list[str]:
        """Return what is certain of the text so far, in order."""
        if self._state == "text" and (self._passed is None or not (self._waiting or _MARK.search(text))):
            if self._passed is not None:
                self._passed.append(text)
            return [text]
        self._waiting += text
        return list(self._certain(last=False))

    def end(self) -> list[str]:
        """Return the rest; text that was held for a closing tag which never came is the answer."""
        rest = list(self._certain(last=True))
        if self._state == "held":
            rest.append("".join(self._held))
        self._held.clear()
        return [piece for piece in rest if piece]

    def _certain(self, *, last: bool) -> Iterator[str]:
        while True:
            before = (self._state, self._waiting)
            match self._state:
                case "start":
                    self._begin(last=last)
                case "text":
                    yield from self._text(last=last)
                case _:
                    yield from self._reasoning(last=last)
            if (self._state, self._waiting) == before or not self._waiting:
                return

    def _begin(self, *, last: bool) -> None:
        """Look whether the answer, or what follows its reasoning, begins with an opening tag."""
        if found := _OPENING.match(self._waiting):
            self._state, self._waiting = "inside", self._waiting[found.end() :]
            self.style = "tagged" if self.style == "apart" else self.style
        elif last or not (self._waiting.isspace() or _UNFINISHED.fullmatch(self._waiting.lstrip())):
            self._state = "text"
            if self.style != "apart":
                self._passed = None
                self._waiting = self._waiting.lstrip()

    def _reasoning(self, *, last: bool) -> Iterator[str]:
        closing = _CLOSING.search(self._waiting)
        if closing is None:
            certain = len(self._waiting) if last else _length_before_unfinished(self._waiting)
            said, self._waiting = self._waiting[:certain], self._waiting[certain:]
        else:
            said, self._waiting = self._waiting[: closing.start()], self._waiting[closing.end() :]
        if self._state == "held":
            # Said with its opening tag after all
            if not self._held and (opening := _OPENING.match(said)):
                said, self._state, self.style = said[opening.end() :], "inside", "tagged"
            elif said:
                self._held.append(said)
        if said:
            yield Reasoning(said)
        if closing is not None:
            if self._state == "held":
                self.style = "closed"
                self._held.clear()
            self._state = "start"

    def _text(self, *, last: bool) -> Iterator[str]:
        text = self._waiting
        if self._passed is not None and (closing := _CLOSING.search(text)):
            is_end = _ends_reasoning("".join(self._passed) + text[: closing.start()], text[closing.end() :], last)
            if is_end is None:
                return
            if is_end:
                retracted = "".join(self._passed)
                self._passed, self._state, self.style = None, "start", "closed"
                self._waiting = text[closing.end() :]
                if retracted:
                    yield Retraction(retracted)
                if said := retracted + text[: closing.start()]:
                    yield Reasoning(said)
                return
            certain = closing.end()
        else:
            certain = len(text) if last or self._passed is None else _length_before_unfinished(text)
        if certain:
            self._waiting = text[certain:]
            if self._passed is not None:
                self._passed.append(text[:certain])
            yield text[:certain]


def _length_before_unfinished(text: str) -> int:
    found = _UNFINISHED.search(text)
    return found.start() if found else len(text)


def _ends_reasoning(before: str, after: str, last: bool) -> bool | None:
    """Whether a closing tag without an opening one ends reasoning; None if that depends on what follows.

    An answer may be about such tags: then they stand in a line, in a fence, or after the opening one.
    """
    if before.count(_FENCE) % 2 or before.endswith("`") or after.startswith("`"):
        return False
    if re.search(rf"<{_NAME}>|\[THINK\]|◁think▷", before, re.IGNORECASE):
        return False
    if not before.strip() or before.rstrip(" \t").endswith("\n"):
        return True
    if not after and not last:
        return None
    return not after or after.lstrip(" \t").startswith("\n")
