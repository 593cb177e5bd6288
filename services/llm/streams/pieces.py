"""The kinds of text that a streamed answer brings beside plain text, and the error that it may bring instead."""

from typing import Any


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


class AnswerFailed(ValueError):
    """The endpoint says, in a response with status 200, that it failed."""

    def __init__(self, body: Any) -> None:
        """Take what it says."""
        super().__init__("The endpoint reports an error inside its answer.")
        self.body = body
