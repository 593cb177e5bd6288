"""How much of what is asked a unit speaks of."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.memory.field import Field
from services.memory.incidence import Values
from services.memory.queries import RecallQuery
from services.memory.terms import informative_terms

# What a message leaves to its neighbours to say counts a little less than what it says.
_BY_NEIGHBOURS = 0.8
_SENTENCE_END = re.compile(r"[。！？!?；;\n]+|\.\s")


def coverage(queries: Sequence[RecallQuery], field: Field, coherence: float, echoing: NDArray[np.bool_]) -> Values:
    """For each unit the share (0..1), by weight, of the informative terms of a query or a sentence it holds.

    Of those that only its neighbours hold a part counts, as much as the talk is coherent (0..1),
    and nothing of those that are in `echoing`.
    """
    best = np.zeros(field.size)
    for names in sorted({names for query in queries for names in _questions(query.text)}):
        weights = field.weights(names)
        held = field.frequencies_of(names)
        own = (held > 0) @ weights / weights.sum()
        around = (field.with_neighbours(np.where(echoing[:, np.newaxis], 0.0, held)) > 0) @ weights / weights.sum()
        best = np.maximum(best, np.maximum(own, _BY_NEIGHBOURS * coherence * around))
    return best


def _questions(text: str) -> list[tuple[str, ...]]:
    """The informative terms of the text and of its sentences: what is asked may be one of many.

    A sentence with one such term is passed over, since whatever holds that term would cover it.
    """
    sentences = [informative_terms(sentence) for sentence in _SENTENCE_END.split(text)]
    several = [names for names in sentences if len(names) > 1]
    return [tuple(sorted(names)) for names in [informative_terms(text), *several] if names]
