"""When the beginning of the prompts may change."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.context import epochs
from services.context.epochs import Moment, NewestSummary
from tests.support.turns import epoch

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDLE = timedelta(minutes=30)
NEWER = NewestSummary("Newer.", 4, (NOW - timedelta(hours=1), "m-4"))


def _moment(**values: Any) -> Moment:
    given: dict[str, Any] = {
        "strategy": "summary",
        "now": NOW,
        "last_message_at": NOW - timedelta(minutes=1),
        "over_high_water": False,
    }
    return Moment(**{**given, **values})


@pytest.mark.parametrize(
    ("before", "summary", "moment", "reason"),
    [
        (None, epochs.NO_SUMMARY, _moment(), "first turn"),
        (epoch(summary_version=3), NEWER, _moment(), None),
        (epoch(summary_version=3), NEWER, _moment(over_high_water=True), "history over its mark"),
        (epoch(summary_version=3), NEWER, _moment(last_message_at=NOW - IDLE), "idle"),
        (epoch(summary_version=3), epochs.NO_SUMMARY, _moment(), "summary withdrawn"),
        (epoch(strategy="topics"), NEWER, _moment(), "strategy changed"),
        (epoch(strategy="topics"), NEWER, _moment(strategy="topics", core_memory_reason="new"), "new"),
        (epoch(summary_version=4), NEWER, _moment(core_memory_grew=True, last_message_at=NOW - IDLE), "idle"),
        (epoch(strategy="window"), NEWER, _moment(strategy="window", over_high_water=True), None),
        (
            epoch(summary_version=3),
            NewestSummary("With what came late.", 4, NEWER.through, rewritten_version=4),
            _moment(),
            "late messages",
        ),
    ],
)
def test_a_new_epoch_begins_for_a_reason(
    before: Any, summary: NewestSummary, moment: Moment, reason: str | None
) -> None:
    assert epochs.reason_to_begin(before, summary, [], moment, IDLE) == reason


def test_new_topics_begin_an_epoch_with_them() -> None:
    topics: Any = [{"title": "Dog", "summary": "Bruno."}]
    before = epoch(strategy="topics")
    moment = _moment(strategy="topics")
    assert epochs.reason_to_begin(before, epochs.NO_SUMMARY, topics, moment, IDLE) == "topics archived"
    begun = epochs.begin(before, "topics archived", NEWER, topics, moment)
    assert (begun["number"], begun["topics"], begun["summary"], begun["history_from"]) == (2, topics, "", None)
    assert epochs.reason_to_begin(begun, epochs.NO_SUMMARY, topics, moment, IDLE) is None
