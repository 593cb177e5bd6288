"""Which units only ask what is being asked: they match best of all, and answer nothing."""

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
    asked = field.units.terms.numbered(names)
    for place in np.flatnonzero(found).tolist():
        found[place] = _says_nothing_else(place, asked, field)
    return found


def _says_nothing_else(place: int, asked: Places, field: CandidateSet) -> bool:
    said = field.units.terms.at(place)[field.units.named[place] :]
    own = np.unique(said).astype(np.intp)
    weights = field.weights_of(own)
    return len(own) > 0 and float(weights[np.isin(own, asked)].sum()) >= _HELD * float(weights.sum())
