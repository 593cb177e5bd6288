"""Training of conditional logits: which of several alternatives, each with its own values, or none of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]

_STEPS = 300
_RATE = 0.05
_STILL = 1e-3


@dataclass(frozen=True)
class Choice:
    """One situation with its alternatives."""

    units: Values
    """A row of values for each alternative."""
    situation: Values
    """Values for the case that none is right; the last is 1."""
    right: Values
    """1 for each alternative that is right."""
    weight: float = 1.0


@dataclass(frozen=True)
class Model:
    """Weights of the columns."""

    units: Values
    situation: Values

    def probabilities(self, choice: Choice) -> Values:
        """Of each alternative."""
        scores = np.append(choice.units @ self.units, choice.situation @ self.situation)
        raised = np.exp(scores - scores.max())
        found: Values = (raised / raised.sum())[:-1]
        return found


def train(known: Sequence[Choice], *, decay: float = 1e-2) -> Model:
    """Learn from all choices at once by Adam (Kingma and Ba, 2015), the columns standardised."""
    rows = np.concatenate([case.units for case in known], dtype=np.float32)
    alone = np.stack([case.situation for case in known], dtype=np.float32)
    group = np.repeat(np.arange(len(known)), [len(case.right) for case in known])
    begins = np.searchsorted(group, np.arange(len(known)))
    right = np.concatenate([case.right / max(case.right.sum(), 1) for case in known], dtype=np.float32)
    none = np.array([case.right.sum() == 0 for case in known], dtype=np.float32)
    weight = np.array([case.weight for case in known])
    weight = (weight / weight.sum()).astype(np.float32)
    moving = [table.std(axis=0) > _STILL for table in (rows, alone)]
    means = [table.mean(axis=0, dtype=np.float64) * of for table, of in zip((rows, alone), moving, strict=True)]
    spreads = [np.where(of, table.std(axis=0), 1.0) for table, of in zip((rows, alone), moving, strict=True)]
    tables = [rows, alone]
    for table, mean, spread in zip(tables, means, spreads, strict=True):
        np.subtract(table, mean, out=table, casting="same_kind")
        np.divide(table, spread, out=table, casting="same_kind")
    tables[1][:, -1] = 1.0
    found = [np.zeros(table.shape[1]) for table in tables]
    first, second = [np.zeros_like(each) for each in found], [np.zeros_like(each) for each in found]
    for step in range(1, _STEPS + 1):
        scores, other = (table @ of.astype(np.float32) for table, of in zip(tables, found, strict=True))
        highest = np.maximum(np.maximum.reduceat(scores, begins), other)
        raised, raised_other = np.exp(scores - highest[group]), np.exp(other - highest)
        total = np.add.reduceat(raised, begins) + raised_other
        of_scores = [(raised / total[group] - right) * weight[group], (raised_other / total - none) * weight]
        rate = _RATE * min(1.0, 2 * (1 - step / _STEPS) + 0.05)
        for at, table in enumerate(tables):
            slope = table.T @ of_scores[at] + decay * found[at]
            first[at] = 0.9 * first[at] + 0.1 * slope
            second[at] = 0.99 * second[at] + 0.01 * slope**2
            step_size = first[at] / (1 - 0.9**step) / (np.sqrt(second[at] / (1 - 0.99**step)) + 1e-8)
            found[at] = found[at] - rate * step_size
    units, situation = (of / spread for of, spread in zip(found, spreads, strict=True))
    # What the means take away is given to the constant, the last column.
    situation[-1] = found[1][-1] + means[0] @ units - means[1][:-1] @ situation[:-1]
    return Model(units, situation)
