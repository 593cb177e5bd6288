"""How near the vectors of items are to one that is sought."""

import numpy as np

from services.store.ranking import nearness, packed


def test_nothing_is_nearer_to_a_text_than_the_text_itself() -> None:
    drawn = np.random.default_rng(5).normal(size=(200, 16))
    vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).tolist()
    found = [nearness([packed([vector])], vector)[0] for vector in vectors]
    assert all(1 - 1e-5 < each < 1 + 1e-5 for each in found)


def test_the_nearest_of_an_items_vectors_counts_and_one_without_length_is_near_nothing() -> None:
    one, other, none = [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]
    assert nearness([packed([other, one]), packed([none])], one) == [1.0, 0.0]
