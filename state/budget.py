"""Budget of one request: its limits, their notation as text, and the measures that kept a turn within them."""

from typing import Literal

from typing_extensions import TypedDict

MOST_CALLS = 100
LONGEST_S = 600.0
MOST_TOKENS = 10_000_000

WRITTEN = "model_calls=N,seconds=N,tokens=N, or some of them"
"""How a budget is written in a header, an option or a setting."""


class RequestBudget(TypedDict, total=False):
    """Limits of one turn; an absent field is no limit."""

    model_calls: int
    """Maximum calls of the model that answers, 1 or more."""
    seconds: float
    """Maximum seconds from the turn's beginning, once earlier turns of its conversation have ended."""
    tokens: int
    """Maximum tokens that the model reads and writes in all calls of the turn."""


BudgetMeasure = Literal["no_tools", "smaller_context", "shorter_answer", "cut_off"]
"""Measure that kept a turn within its budget: a call without the tools that it would have had; less context; an
answer that ended when the tokens were used up; an answer that ended before the model had finished, or without
asking it again."""


class BudgetReport(TypedDict):
    """The limits of a turn, and what was done to keep within them."""

    limits: RequestBudget
    measures: list[BudgetMeasure]
    """In order, without duplicates; empty = the budget changed nothing."""


def parse_budget(text: str) -> RequestBudget:
    """Read limits written as `model_calls=2, seconds=20, tokens=4000`. Raises `ValueError` if the text is not
    of this form, or a value is out of range; the message says which."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, _, value in pairs}
    if not given or len(given) < len(pairs):
        raise ValueError(f"must be {WRITTEN}")
    budget = RequestBudget()
    for name, value in given.items():
        match name:
            case "model_calls":
                budget["model_calls"] = _count(name, value, MOST_CALLS)
            case "tokens":
                budget["tokens"] = _count(name, value, MOST_TOKENS)
            case "seconds":
                budget["seconds"] = _seconds(value)
            case _:
                raise ValueError(f"{name} is not known; it must be {WRITTEN}")
    return budget


def _count(name: str, value: str, most: int) -> int:
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value[:20]) <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most}")
    return int(value)


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_S:
        raise ValueError(f"seconds must be a number above 0, at most {LONGEST_S:g}")
    return seconds
