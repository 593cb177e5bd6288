"""How active the users of a crowd are."""

import statistics

from benchmarks.crowd import exchanges_of


def test_a_few_users_have_most_of_what_is_said_and_growing_a_crowd_changes_nobody() -> None:
    said = sorted(exchanges_of(user, 100) for user in range(20_000))
    assert 90 < statistics.mean(said) < 110
    assert said[0] >= 2
    assert statistics.median(said) < 50
    assert sum(said[-2_000:]) > sum(said) / 2
    assert said == sorted(exchanges_of(user, 100) for user in range(20_000))
