"""Milvus Lite with an index of terms in arrays: run as `python -m`, with the arguments of `milvus_lite`.

Milvus Lite's own index of words makes a tuple for each term of each row, at the first search after every start:
with 10,000 Chinese messages that takes a second and a hundred megabytes. This index finds the same rows.
"""

import struct
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from milvus_lite.analyzer import sparse
from milvus_lite.cmdline import main
from milvus_lite.index import sparse_factory
from milvus_lite.index.sparse_common import empty_results, validate_mask
from milvus_lite.index.sparse_inverted import SparseInvertedIndex
from numpy.typing import NDArray

_PAIR = struct.Struct("<If")
Terms = Mapping[int, float]
"""Frequency of each term, by the term's hash."""


class ArrayIndex(SparseInvertedIndex):  # type: ignore[misc]  # without types
    """Scores rows by BM25."""

    def build(self, sparse_vectors: Sequence[Terms], valid_mask: Any = None) -> None:
        """Index the terms of rows, without the rows that a mask excludes."""
        size = len(sparse_vectors)
        mask = validate_mask(valid_mask, size)
        rows = [row if mask is None or mask[at] else {} for at, row in enumerate(sparse_vectors)]
        sizes = [len(row) for row in rows]
        total = sum(sizes)
        terms = np.fromiter(chain.from_iterable(rows), np.uint32, total)
        counts = np.fromiter(chain.from_iterable(row.values() for row in rows), np.float32, total)
        places = np.repeat(np.arange(size, dtype=np.int32), sizes)
        order = np.argsort(terms, kind="stable")
        self._names, begins = np.unique(terms[order], return_index=True)
        self._begins = np.append(begins, total)
        self._places, self._counts = places[order], counts[order]
        self._doc_lengths = np.bincount(places, counts, minlength=size)
        self.doc_count = size if mask is None else int(mask.sum())
        self.avgdl = float(self._doc_lengths.sum()) / max(self.doc_count, 1)

    def search(self, query_sparse_vectors: Sequence[Terms], top_k: int, valid_mask: Any = None) -> tuple[Any, Any]:
        """Return the best rows for each query, and their negated scores."""
        mask = validate_mask(valid_mask, len(self._doc_lengths))
        ids, distances = empty_results(len(query_sparse_vectors), top_k)
        lengths = self.k1 * (1 - self.b + self.b * self._doc_lengths / (self.avgdl or 1.0))
        for query, found, far in zip(query_sparse_vectors, ids, distances, strict=True):
            scores = np.zeros(len(lengths))
            for term, weight in query.items():
                self._add(term, weight, lengths, scores)
            if mask is not None:
                scores[~mask] = 0.0
            best = np.argsort(-scores, kind="stable")[: min(top_k, int(np.count_nonzero(scores)))]
            found[: len(best)], far[: len(best)] = best, -scores[best]
        return ids, distances

    def _add(self, term: int, weight: float, lengths: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
        at = int(np.searchsorted(self._names, term))
        if at == len(self._names) or self._names[at] != term:
            return
        part = slice(*self._begins[at : at + 2])
        places, counts = self._places[part], self._counts[part]
        idf = np.log((self.doc_count - len(places) + 0.5) / (len(places) + 0.5) + 1)
        scores[places] += idf * weight * counts * (self.k1 + 1) / (counts + lengths[places])


def unpacked(packed: bytes) -> Terms:
    """Return the terms of a stored row."""
    return dict(_PAIR.iter_unpack(packed))


def replace_index() -> None:
    """Make Milvus Lite use this index of words in this process."""
    sparse_factory.SparseInvertedIndex = ArrayIndex
    sparse.bytes_to_sparse = unpacked


if __name__ == "__main__":
    replace_index()
    raise SystemExit(main())
