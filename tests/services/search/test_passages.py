import numpy as np

from services.search.passages import PASSAGE_TERMS, Passages
from services.search.sequences import TermSequences
from services.search.term_matrix import TermMatrix


def passages(*units: list[str]) -> Passages:
    sequences = TermSequences.of(units)
    return Passages(sequences, TermMatrix(sequences))


def test_short_units_are_one_passage_each() -> None:
    found = passages(["a", "b"], ["c"], [])
    assert found.unit.tolist() == [0, 1, 2]
    assert found.best_row(np.array([1.0, 2.0, 3.0])).tolist() == [0, 1, 2]


def test_a_long_unit_is_cut_into_passages_that_overlap_and_hold_all_of_it() -> None:
    long = [f"t{at}" for at in range(3 * PASSAGE_TERMS)]
    found = passages(["a"], long, ["b"])
    rows = np.flatnonzero(found.unit == 1)
    assert len(rows) > 3
    assert (found.frequencies_of(long)[rows].sum(axis=0) >= 1).all()
    assert found.lengths[rows].max() == PASSAGE_TERMS


def test_a_unit_counts_by_its_best_passage_and_not_by_their_sum() -> None:
    spread = ["red", *["x"] * (2 * PASSAGE_TERMS), "kite"]
    together = ["red", "kite"]
    found = passages(spread, together)
    matched = found.frequencies_of(["red", "kite"]).sum(axis=1)
    assert found.best_of(matched).tolist() == [1.0, 2.0]
    assert matched[found.best_row(matched)].tolist() == [1.0, 2.0]
