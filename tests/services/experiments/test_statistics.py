"""Estimates and their intervals: known values, and how often an interval holds the truth."""

import random
from collections.abc import Sequence
from functools import partial

import pytest

from services.experiments.report import NOTHING, Cluster, difference, estimate, student_t

pytestmark = pytest.mark.untraced

mean, share = estimate, partial(estimate, is_share=True)


def _single(values: Sequence[float]) -> list[Cluster]:
    return [Cluster(1, value) for value in values]


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (3, 3.182), (29, 2.045), (10**9, 1.96)])
def test_quantiles_of_students_t_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_t(freedom) == pytest.approx(quantile, rel=0.005)


def test_a_share_has_wilsons_interval() -> None:
    found = share(_single([1] * 15 + [0] * 133))
    assert (found.value, found.low, found.high) == pytest.approx((0.1014, 0.0624, 0.1605), abs=1e-3)


def test_without_observations_there_is_no_estimate_and_of_one_user_no_interval() -> None:
    assert share([]) == mean([]) == difference(mean([]), mean([Cluster(1, 1)])) == NOTHING
    assert (mean([Cluster(5, 10)]).value, mean([Cluster(5, 10)]).low) == (2, None)
    only = share([Cluster(5, 0)])
    assert only.value == 0 and only.high is not None and only.high > 0.5  # noqa: PT018


@pytest.mark.parametrize("users", [30, pytest.param(200, marks=pytest.mark.soak)])
def test_intervals_hold_the_truth_as_often_as_they_say_though_users_differ(users: int) -> None:
    chance = random.Random(7)
    held = {"share": 0, "mean": 0, "share difference": 0, "mean difference": 0}
    rounds = 400

    def sample() -> tuple[list[Cluster], list[Cluster]]:
        shares, means = [], []
        for _ in range(users):
            own, count = chance.betavariate(3, 7), chance.randint(1, 8)
            level = chance.gauss(100, 20)
            shares.append(Cluster(count, sum(chance.random() < own for _ in range(count))))
            means.append(Cluster(count, sum(chance.gauss(level, 30) for _ in range(count))))
        return shares, means

    for _ in range(rounds):
        (shares, means), (control_shares, control_means) = sample(), sample()
        for name, found, truth in (
            ("share", share(shares), 0.3),
            ("mean", mean(means), 100),
            ("share difference", difference(share(shares), share(control_shares)), 0),
            ("mean difference", difference(mean(means), mean(control_means)), 0),
        ):
            assert found.low is not None and found.high is not None  # noqa: PT018
            held[name] += found.low <= truth <= found.high
    assert all(0.91 <= count / rounds <= 0.99 for count in held.values()), held
