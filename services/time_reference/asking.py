"""What rules of a language have to tell of a clause, its time words already replaced by marks."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """How people of one language ask about what was said before. Every pattern is searched in one clause."""

    talk: re.Pattern[str]
    """Words of the two with each other, and the time of them, as a statement, a question or part of one."""
    elsewhere: re.Pattern[str]
    """The talk was with somebody else, or the clause is about a text, a plan or a supposition."""
    asks: re.Pattern[str]
    """A question, or a request to tell, repeat or go on."""
    names: re.Pattern[str]
    """The whole clause names what was said, and the question about it follows ("the book you named last week")."""
    follows: re.Pattern[str]
    """A short question about what the clause before it named or told."""
    said: re.Pattern[str]
    """Words of the two with each other, with or without a time."""
    recalls: re.Pattern[str]
    """Asks whether it is remembered, or to be reminded: this beside a question adds nothing to it."""
    tasks: re.Pattern[str]
    """A question, or a request of any kind."""
    wants: re.Pattern[str]
    """Asks for something to be done, in a clause that asks about the past."""
    intends: re.Pattern[str]
    """What is to be said yet, where the time is one that is not over."""
    reminder: re.Pattern[str]
    """Wants to be reminded, which at a future time is no question about the past."""
    detail: re.Pattern[str]
    """Asks for what a summary may lack."""
    time_alone: re.Pattern[str]
    """The whole clause is the time of the next."""
