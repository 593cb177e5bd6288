"""Learn to turn the embedding of a message towards those of what bears on it, for `training.recall_weights`.

An encoder puts a message beside what sounds like it: a question beside questions. What answers it sounds
different. The map is learned by contrast, a message with what bears on it against what else was said, is held near
to changing nothing, and is reduced to the few directions that matter.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.search.legs import sought
from training.asked_messages import OWN, OWN_FAMILIES, Asked, read
from training.stores import encode

Rows = NDArray[np.float32]

_SHARPNESS = 12.0
_RIDGE = 1.0
_STEPS, _RATE = 60, 0.01
_RANK = 64
_WEIGHT_OF_A_FAMILY, _WEIGHT_OF_CHOICES = 0.8, 2.0
_OTHERS = 400
"""Units of a store that are set against those that bear on its messages."""


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


def pairs_of(asked: Sequence[Asked]) -> list[Pairs]:
    """Return the messages on which something bears, with what does and what else their stores hold."""
    chance = np.random.default_rng(1)
    stores: defaultdict[int, list[Asked]] = defaultdict(list)
    for each in asked:
        if each.relevant and each.family not in OWN_FAMILIES:
            stores[id(each.units)].append(each)
    counts = Counter(each.family for each in asked if each.relevant)
    pairs = []
    for some in stores.values():
        wanted = sorted(frozenset[int]().union(*(each.relevant for each in some)))
        others = np.setdiff1d(some[0].mask.nonzero()[0], wanted)
        places = np.array([*wanted, *chance.permutation(others)[:_OTHERS]], dtype=np.intp)
        bears = np.array([[place in each.relevant for place in places.tolist()] for each in some])
        pairs.append(
            Pairs(
                np.array([sought(each.query, each.vectors)[0] for each in some]),
                some[0].units.embeddings(places),
                bears,
                _WEIGHT_OF_A_FAMILY * len(some) / counts[some[0].family],
            )
        )
    return [*pairs, *_own_pairs(facts="facts" in counts)]


def _own_pairs(*, facts: bool) -> Iterator[Pairs]:
    for language in ("en", "zh"):
        choices, told = (read(OWN / f"{name}_{language}.jsonl") for name in ("choices", "facts"))
        remarks = (OWN / f"remarks_{language}.txt").read_text(encoding="utf-8").splitlines()
        other = [each["near"] for each in told] + remarks
        every = [each["told"] for each in told]
        yield _one_each(choices, "message", [*other, *every[::2]], _WEIGHT_OF_CHOICES)
        if facts:
            yield _one_each(told, "question", other, 1.0)


def _one_each(examples: Sequence[dict[str, str]], key: str, other: Sequence[str], weight: float) -> Pairs:
    messages, units = (
        np.array(encode(texts), dtype=np.float32)
        for texts in ([each[key] for each in examples], [*(each["told"] for each in examples), *other])
    )
    messages, units = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (messages, units))
    return Pairs(messages, units, np.eye(len(messages), len(units), dtype=np.bool_), weight)
