"""A clock that is set, and one that runs."""

import time
from datetime import UTC, datetime, timedelta

from services.jobs.records import ClockWatch


def test_after_a_jump_in_either_direction_it_is_not_for_a_while() -> None:
    for jump in (timedelta(hours=1), timedelta(days=-1)):
        watch = ClockWatch(settles_s=60)
        assert watch.is_steady(datetime.now(UTC))
        assert not watch.is_steady(datetime.now(UTC) + jump)
        assert not watch.is_steady(datetime.now(UTC) + jump)


def test_it_is_again_when_everybody_has_had_the_time_to_write_it() -> None:
    watch = ClockWatch(settles_s=0)
    assert watch.is_steady(datetime.now(UTC))
    assert watch.is_steady(datetime.now(UTC) + timedelta(days=1))


def test_an_answer_that_was_late_is_no_jump() -> None:
    watch = ClockWatch(settles_s=60)
    assert watch.is_steady(datetime.now(UTC))
    assert watch.is_steady(datetime.now(UTC) + timedelta(seconds=1), time.monotonic() - 30)
    assert not watch.is_steady(datetime.now(UTC) - timedelta(seconds=40))
