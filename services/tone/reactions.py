"""How a user took the last answer, by what they say next."""

from typing import Literal

from services.tone.lexicon import Phrases, chinese, english
from services.tone.scoring import folded_units

Reaction = Literal["satisfied", "dissatisfied"]

_DENIALS = frozenset({"不", "没", "别", "not", "no", "don't", "doesn't", "didn't", "isn't", "wasn't", "never"})
_REACH = 3
"""Units (English words, Chinese characters) over which a denial reaches."""


def reaction_of(message: str) -> Reaction | None:
    """Whether the user is content with the answer before; None = they do not say. Dissatisfaction comes first."""
    units = folded_units(message)
    if any(_says(units, lexicon.dissatisfied) for lexicon in (chinese(), english())):
        return "dissatisfied"
    if any(_says(units, lexicon.satisfied) for lexicon in (chinese(), english())):
        return "satisfied"
    return None


def _says(units: list[str], phrases: Phrases) -> bool:
    return any(
        _DENIALS.isdisjoint(units[max(0, begin - _REACH) : begin]) for begin, _, _ in phrases.found_in(units)
    )
