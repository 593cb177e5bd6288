"""Which episodes are alike: connected components of the nearest neighbours of each, above a similarity.

Compared in blocks, so that memory grows with the number of episodes and not with its square.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from services.search.embedding_quality import Vectors

_BLOCK = 256
_NEIGHBOURS = 16


def components(vectors: Vectors, similarity: float, *, neighbours: int = _NEIGHBOURS) -> list[list[int]]:
    """Groups of two and more, each by place in `vectors`, in an order in which neighbours follow one another.

    An edge joins a vector with each of its `neighbours` nearest from a cosine of `similarity` on. A vector of
    length zero is like nothing.
    """
    table = np.asarray(vectors, dtype=np.float32)
    if len(table) < 2:  # noqa: PLR2004
        return []
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    table = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    edges: list[list[int]] = [[] for _ in table]
    for start in range(0, len(table), _BLOCK):
        _connect(table, start, similarity, neighbours, edges)
    return _walk(edges)


def pieces(group: Sequence[int], most: int) -> list[list[int]]:
    """Split a group into as few parts of at most `most` members as possible, of equal size but for one."""
    count = -(-len(group) // most)
    cuts = [len(group) * number // count for number in range(count + 1)]
    return [list(group[start:end]) for start, end in pairwise(cuts)]


def _connect(
    table: NDArray[np.float32], start: int, similarity: float, neighbours: int, edges: list[list[int]]
) -> None:
    alike = table[start : start + _BLOCK] @ table.T
    places = np.arange(len(alike))
    alike[places, start + places] = -1.0
    if alike.shape[1] > neighbours:
        nearest = np.argpartition(alike, -neighbours, axis=1)[:, -neighbours:]
    else:
        nearest = np.tile(np.arange(alike.shape[1]), (len(alike), 1))
    near = np.take_along_axis(alike, nearest, axis=1)
    for row, column in np.argwhere(near >= similarity).tolist():
        one, other = start + row, int(nearest[row, column])
        edges[one].append(other)
        edges[other].append(one)


def _walk(edges: Sequence[Sequence[int]]) -> list[list[int]]:
    seen = [False] * len(edges)
    groups = []
    for first in range(len(edges)):
        if seen[first] or not edges[first]:
            continue
        seen[first] = True
        group, waiting = [], [first]
        while waiting:
            one = waiting.pop()
            group.append(one)
            for other in edges[one]:
                if not seen[other]:
                    seen[other] = True
                    waiting.append(other)
        groups.append(group)
    return groups
