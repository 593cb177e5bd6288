"""How near the vectors of items are to one that is sought."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from services.store.ranking import Held, packed


def _scores(vectors: Sequence[str | None], sought: Sequence[float]) -> list[tuple[int, float | None]]:
    ids = [UUID(int=number) for number in range(len(vectors))]
    ranked = Held.of((0, 0), UUID(int=0), ids, vectors, len(sought)).ranked(sought, 0, len(vectors))
    return [(found.int, score) for found, score in ranked]


def test_nothing_is_nearer_to_a_text_than_the_text_itself() -> None:
    drawn = np.random.default_rng(5).normal(size=(200, 16))
    vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).tolist()
    found = [_scores([packed([vector])], vector)[0][1] for vector in vectors]
    assert all(each is not None and 1 - 1e-5 < each < 1 + 1e-5 for each in found)


def test_the_nearest_of_an_items_vectors_counts_and_one_without_length_is_near_nothing() -> None:
    one, other, none = [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]
    items = [packed([none]), None, packed([other, one])]
    assert _scores(items, one) == [(2, 1.0), (0, 0.0), (1, None)]
