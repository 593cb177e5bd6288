"""Groups of vectors that are alike, compared in blocks."""

import numpy as np
from numpy.typing import NDArray

from services.compression.similarity import components, pieces


def _around(centre: int, number: int, dimensions: int = 64, noise: float = 0.02) -> NDArray[np.float64]:
    chance = np.random.default_rng(centre)
    centres = np.random.default_rng(7).standard_normal((50, dimensions))
    around: NDArray[np.float64] = centres[centre] + noise * chance.standard_normal((number, dimensions))
    return around


def test_what_is_alike_is_one_group_over_the_borders_of_blocks() -> None:
    vectors = np.concatenate([_around(centre, 30 + centre) for centre in range(20)])
    mixed = np.random.default_rng(1).permutation(len(vectors))
    whose = np.repeat(range(20), [30 + centre for centre in range(20)])[mixed]
    groups = components(vectors[mixed], 0.85)
    assert sorted(len(group) for group in groups) == [30 + centre for centre in range(20)]
    assert all(len(set(whose[group])) == 1 for group in groups)


def test_a_chain_is_one_group_and_neighbours_follow_one_another() -> None:
    angles = np.arange(40) * 0.1
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    (group,) = components(vectors, 0.99, neighbours=2)
    assert sorted(group) == list(range(40))
    assert group == list(range(40))


def test_what_is_like_nothing_is_in_no_group() -> None:
    assert components([], 0.85) == []
    assert components([[1.0, 0.0]], 0.85) == []
    assert components([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], 0.85) == []


def test_large_groups_are_parted_evenly() -> None:
    assert [len(part) for part in pieces(range(12), 12)] == [12]
    assert [len(part) for part in pieces(range(13), 12)] == [6, 7]
    assert [each for part in pieces(range(100), 12) for each in part] == list(range(100))
    assert max(len(part) for part in pieces(range(100), 12)) <= 12
