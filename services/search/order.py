"""The order of what is found: what was learned and what the legs say by themselves take turns."""

import numpy as np

from services.search.units import Mask, Places, Values

_CLEARLY = {True: 0.6, False: 0.8}
"""For messages of several sentences and for others: the share of the legs' best score that a unit needs for a turn
of the legs."""
_APART = 15
"""Places between what leads a long exchange and its other message: not among the first ten, but near enough for a
prompt."""


def in_turns(scores: Values, plain: Values, *, several: bool) -> Places:
    """Return the places of scores, best first: in turns with what the legs say by themselves.

    A unit has the better of its two turns. So the first ten hold the first five by the legs, if these match nearly
    as well as the best, whatever was learned. The legs begin where the message has several sentences.

    Args:
        scores: of what was found.
        plain: the sums of both legs.
        several: the message has several sentences.
    """
    turns = 2 * np.arange(len(scores))
    turn = np.empty(len(scores), dtype=np.intp)
    turn[np.argsort(-scores, kind="stable")] = turns + several
    by_legs = np.argsort(-plain, kind="stable")
    by_legs = by_legs[plain[by_legs] >= _CLEARLY[several] * plain.max(initial=0.0)]
    turn[by_legs] = np.minimum(turn[by_legs], turns[: len(by_legs)] + (not several))
    return np.argsort(turn, kind="stable")


def apart(exchanges: Places, leads: Mask) -> Places:
    """Return an order in which what leads an exchange has the better place of both, and the other is far behind.

    Args:
        exchanges: of units, best first.
        leads: which of them lead their exchange.
    """
    _, first, which, counts = np.unique(exchanges, return_index=True, return_inverse=True, return_counts=True)
    return np.argsort(first[which] + _APART * ((counts[which] > 1) & ~leads), kind="stable")
