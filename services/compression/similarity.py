"""Finds similar episodes: connected components of each one's nearest neighbours, above a similarity.

Comparing in blocks makes memory grow linearly with the number of episodes.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from services.search.embedding_quality import Vectors

_BLOCK = 256
_NEIGHBOURS = 16


def components(vectors: Vectors, similarity: float, *, neighbours: int = _NEIGHBOURS) -> list[list[int]]:
    """Return groups of two or more, as indexes into `vectors`, ordered so that neighbours are adjacent.

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
    """Split a group into the fewest parts of at most `most` members, of equal size except for one."""
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
