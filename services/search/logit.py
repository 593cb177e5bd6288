"""A conditional logit: which of several alternatives is right, or none of them.

Each alternative has a score, and so has the case that none is right; their softmax is the probability of each
(McFadden, "Conditional logit analysis of qualitative choice behavior", 1973). `benchmarks.conditional_logit`
learns the weights.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from services.search.term_matrix import Values


def probabilities(scores: Values, none: float) -> Values:
    """The probability of each alternative, by their scores and that of none; what is left to 1 is that of none."""
    every = np.append(scores, none)
    raised = np.exp(every - every.max())
    found: Values = (raised / raised.sum())[:-1]
    return found


@cache
def stored_weights(package: str) -> Mapping[str, Mapping[str, float]]:
    """The learned weights of a package, from its `likelihood.json`: by kind and name."""
    stored: dict[str, dict[str, float]] = json.loads(
        (files(package) / "likelihood.json").read_text(encoding="utf-8")
    )
    return stored
