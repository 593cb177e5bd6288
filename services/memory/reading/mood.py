"""Finds how a user feels, from the user's own words. A feeling is not a fact; the prompts of the next days show it
on one line.

Only the feeling and the position of the words in their message are stored, so the feeling goes when the words go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from services.memory.reading.quotes import is_quoted
from services.text.storable import storable

Feeling = Literal["anxious", "sad", "grieving", "angry", "lonely", "tired", "confused", "excited", "proud", "calm"]
FEELINGS: tuple[Feeling, ...] = get_args(Feeling)
Switch = Literal["off", "on"]
"""The user's wish about their feelings: not to be noted any more, or to be noted again."""
_SWITCHES: tuple[Switch, ...] = get_args(Switch)
_LONGEST = 160
"""Maximum characters of the words that express it."""


class Mood(BaseModel):
    """How the user feels, in the requested form; empty if their words do not say it."""

    feeling: str = Field(
        "",
        description=f"one of {', '.join(FEELINGS)}; empty if no words of the user say it; off or on: as they ask",
    )
    about: str = Field("", description="what it is about")
    quote: str = Field("", description="the user's words that say it, copied letter by letter")


@dataclass(frozen=True)
class Felt:
    """A feeling, or a wish about noting feelings, with the words of a message that express it."""

    message: str
    """The message's short id."""
    feeling: Feeling | Switch
    span: tuple[int, int]
    """Where the words begin and end in the text."""


def felt(given: Any, messages: Mapping[str, str], fiction: Sequence[str] = ()) -> Felt | None:
    """Return the feeling in a model's answer, if words of the user express it; otherwise None.

    Args:
        given: the answer's `mood`, of whatever form.
        messages: the user's new messages by their short ids.
        fiction: the short ids of those that belong to a game or story.
    """
    if not isinstance(given, Mapping):
        return None
    feeling, quote = (str(given.get(each) or "").strip() for each in ("feeling", "quote"))
    known = next((each for each in (*FEELINGS, *_SWITCHES) if each == feeling.casefold()), None)
    quote = storable(quote)
    if known is None or not quote or len(quote) > _LONGEST:
        return None
    for key, text in reversed([*messages.items()]):
        begin = text.casefold().find(quote.casefold())
        if begin >= 0 and len(text.casefold()) == len(text) and key not in fiction and is_quoted(quote, text):
            return Felt(key, known, (begin, begin + len(quote)))
    return None
