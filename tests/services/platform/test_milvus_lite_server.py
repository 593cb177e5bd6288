"""The index by words of the embedded Milvus finds what Milvus Lite's own finds."""

from random import Random

import numpy as np
import pytest
from milvus_lite.analyzer import sparse
from milvus_lite.analyzer.sparse import bytes_to_sparse, sparse_to_bytes
from milvus_lite.index import sparse_factory
from milvus_lite.index.sparse_inverted import SparseInvertedIndex

from services.platform.milvus_lite_server import ArrayIndex, replace_index, unpacked

_ROWS, _FOUND = 300, 20


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_same(seed: int) -> None:
    chosen = Random(seed)

    def terms(most: int) -> dict[int, float]:
        return {
            chosen.choice([chosen.randrange(40), 2**32 - 1]): chosen.randint(1, 4)
            for _ in range(chosen.randint(0, most))
        }

    rows, queries = [terms(30) for _ in range(_ROWS)], [terms(8) for _ in range(20)]
    living, wanted = (np.array([chosen.random() < 0.8 for _ in rows]) for _ in range(2))
    found = []
    for index in (SparseInvertedIndex(), ArrayIndex()):
        index.build(rows, living)
        found.append(index.search(queries, _FOUND, wanted))
    (ids, distances), (own_ids, own_distances) = found
    assert np.allclose(distances, own_distances, atol=1e-4)
    # Where several rows are equally good, any of them may be the last
    for these, those, far in zip(ids.tolist(), own_ids.tolist(), distances, strict=True):
        better = far < far[-1] - 1e-4 if np.isfinite(far[-1]) else np.isfinite(far)
        assert {each for each, is_better in zip(these, better, strict=True) if is_better} <= set(those)


def test_an_empty_one_finds_nothing() -> None:
    index = ArrayIndex()
    index.build([])
    ids, distances = index.search([{1: 1.0}], 2)
    assert ids.tolist() == [[-1, -1]]
    assert np.isinf(distances).all()


def test_rows_are_read_as_they_are_stored() -> None:
    row = {7: 2.0, 2**32 - 1: 1.0}
    assert unpacked(sparse_to_bytes(row)) == bytes_to_sparse(sparse_to_bytes(row)) == row
    assert unpacked(b"") == {}


def test_milvus_lite_makes_it_once_it_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((sparse_factory, "SparseInvertedIndex"), (sparse, "bytes_to_sparse")):
        monkeypatch.setattr(module, name, getattr(module, name))  # as it was, after this test
    replace_index()
    index = sparse_factory.create_sparse_index("BM25", {"bm25_k1": 1.2})
    assert isinstance(index, ArrayIndex)
    assert sparse_factory.sparse_index_matches(index, "BM25", {"bm25_k1": 1.2})
    assert sparse.bytes_to_sparse is unpacked
