"""Rules of a language about a clause whose time words are already replaced by marks."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """How people of one language refer to what was said before. Every pattern is searched in one clause."""

    talk: re.Pattern[str]
    """Words of the two with each other, and the time of them, be it stated, asked, or named in passing."""
    of_then: re.Pattern[str]
    """A question about what the two said, in the past and without a time: the clause beside it may name that."""
    within: re.Pattern[str]
    """The same with a clause between that tells what was said: the time is of the talk if it is surely over."""
    elsewhere: re.Pattern[str]
    """The clause is a text to work on, a tale to write, or a supposition; then nothing after it counts either."""
    said: re.Pattern[str]
    """Words of the two with each other, with or without a time."""
    intends: re.Pattern[str]
    """What is to be said yet, where the time is one that is not over."""
    detail: re.Pattern[str]
    """Asks for what a summary may lack."""
    time_alone: re.Pattern[str]
    """The whole clause is the time of the next."""


def one_of(*words: str) -> str:
    """A pattern for any of these, which are patterns themselves, set apart by commas."""
    return "(?:" + "|".join(re.split(r",\s+", ", ".join(words).strip())) + ")"
