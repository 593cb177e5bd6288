import pytest

from services.evaluation.evaluation import figure, score, summarise

SHOWN = [f"m{number}" for number in range(1, 31)]


def test_recall_is_the_share_of_the_evidence_among_the_messages_shown() -> None:
    scores = score(SHOWN, frozenset({"m2", "m8", "m15", "m40"}))
    assert scores == {"recall@5": 0.25, "recall@10": 0.5, "recall@20": 0.75, "hit@10": 1.0, "mrr": 0.5}


def test_means_are_over_the_questions_with_an_interval_around_them() -> None:
    figures = summarise([score(SHOWN, frozenset({name})) for name in ("m1", "m1", "m50", "m4")])
    assert figures["recall@5"].mean == 0.75
    assert figures["mrr"].mean == pytest.approx((1 + 1 + 0 + 0.25) / 4)
    assert figures["recall@5"].low < 0.75 < figures["recall@5"].high


def test_the_interval_is_that_of_the_bootstrap() -> None:
    sure, unsure = figure([0.5] * 40), figure([0.0, 1.0] * 20)
    assert (sure.low, sure.mean, sure.high) == (0.5, 0.5, 0.5)
    # The standard error of 40 fair coins is .079.
    assert unsure.high - unsure.low == pytest.approx(4 * 0.079, abs=0.03)
    assert figure([0.0, 1.0] * 20) == unsure
