"""Learn to turn the embedding of a message towards those of what bears on it, for `training.recall_weights`.

An encoder puts a message beside what sounds like it: a question beside questions. What answers it sounds
different. The map is learned by contrast, a message with what bears on it against what else was said, is held near
to changing nothing, and is reduced to the few directions that matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]

_SHARPNESS = 12.0
_RIDGE = 1.0
_STEPS, _RATE = 60, 0.01
_RANK = 64


@dataclass(frozen=True)
class Pairs:
    """Messages of one store.

    Attributes:
        messages: Their embeddings, of length 1.
        units: Those of what was said.
        bears: Which of these (columns) bear on which message (rows).
        weight: How much all of them count.
    """

    messages: Rows
    units: Rows
    bears: NDArray[np.bool_]
    weight: float


def learn_matching(pairs: Sequence[Pairs]) -> Rows:
    """Return two matrices whose product is to be added to an embedding: from it, and back."""
    size = pairs[0].messages.shape[1]
    change = np.zeros((size, size), dtype=np.float32)
    mean, square = np.zeros_like(change), np.zeros_like(change)
    wanted = [each.bears / each.bears.sum(axis=1, keepdims=True) for each in pairs]
    for step in range(1, _STEPS + 1):  # by the method called Adam
        gradient = _RIDGE * change
        for each, target in zip(pairs, wanted, strict=True):
            match = _SHARPNESS * (each.messages + each.messages @ change) @ each.units.T
            share = np.exp(match - match.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            slope = each.messages.T @ ((share - target).astype(np.float32) @ each.units)
            gradient += each.weight * _SHARPNESS / len(each.messages) * slope
        mean += 0.1 * (gradient - mean)
        square += 0.01 * (gradient**2 - square)
        rate = _RATE * (1 - 0.9 * step / _STEPS)
        change -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-6)
    left, sizes, right = np.linalg.svd(change)
    root = np.sqrt(sizes[:_RANK, np.newaxis])
    return np.array([root * left[:, :_RANK].T, root * right[:_RANK]], dtype=np.float32)
