"""Finds units that only repeat the question: they match best of all and answer nothing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.search.candidates import CandidateSet
from services.search.columns import ASKS
from services.search.sequences import Places
from services.search.term_matrix import Values, weighted

# By weight: so much of what it says is in the query, and so much of the query in it.
_HELD = 0.8
_HOLDS = 0.5
# By number, and with the speaker's name: fewer, and it is not worth looking at.
_HELD_AT_LEAST = 0.5


def repeated_questions(names: Sequence[str], frequencies: Values, field: CandidateSet) -> NDArray[np.bool_]:
    """For each unit whether it is a question that says what a query says, and nothing else.

    Args:
        names: The terms of the query.
        frequencies: How often each unit (row) holds each of them (column).
        field: The units.
    """
    weights = field.weights(names)
    found: NDArray[np.bool_] = weighted((frequencies > 0).astype(np.float64), weights) >= _HOLDS * weights.sum()
    found &= frequencies.sum(axis=1) >= _HELD_AT_LEAST * field.lengths
    found &= field.units.are(ASKS) & bool(names)
    found[found] = _say_nothing_else(found.nonzero()[0], field.units.terms.numbered(names), field)
    return found


def _say_nothing_else(places: Places, asked: Places, field: CandidateSet) -> NDArray[np.bool_]:
    """Whether nearly all of a unit, by weight, is in the query; a leading name of the speaker is ignored."""
    named = field.units.named[places].astype(np.intp)
    begins = field.units.terms.begins
    said = field.units.terms.cut(begins[places] + named, (begins[places + 1] - begins[places] - named).clip(min=0))
    # Each term of a unit once.
    width = len(said.vocabulary) + 1
    rows, numbers = np.divmod(np.unique(said.rows * width + said.numbers), width)
    weights = field.weights_of(numbers)
    whole = np.bincount(rows, weights, minlength=len(places))
    is_asked = np.zeros(width, dtype=np.bool_)
    is_asked[asked] = True  # a term that no unit holds has the last place
    held = np.bincount(rows, np.where(is_asked[numbers], weights, 0.0), minlength=len(places))
    answered: NDArray[np.bool_] = (whole > 0) & (held >= _HELD * whole)
    return answered
