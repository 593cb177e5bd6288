"""Rules for when the beginning of a conversation's prompts may change.

Within an epoch the summary may be renewed any number of times; the prompt shows the epoch's own summary and the
messages after its covered point, so that it only grows at its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from state.prompt import ContextStrategy, CoreMemorySections, Epoch, HistoryMessage, TopicSummary

Place = tuple[datetime, str]
"""`created_at` and id of a message."""


@dataclass(frozen=True)
class NewestSummary:
    """The values with which an epoch begins."""

    text: str = ""
    version: int = 0
    """0 = there is none."""
    through: Place | None = None
    """The last message that it covers."""
    rewritten_version: int = 0
    """The last version that included late messages."""


NO_SUMMARY = NewestSummary()


@dataclass(frozen=True)
class Moment:
    """What decides whether a new epoch begins."""

    strategy: ContextStrategy
    now: datetime
    last_message_at: datetime | None
    over_high_water: bool
    """Whether the history of the epoch has passed its mark."""
    core_memory: CoreMemorySections | None = None
    """None = currently unknown."""
    core_memory_reason: str | None = None
    """Why it requires a new epoch, if it does."""
    core_memory_grew: bool = False
    """Whether anything was added to it since the epoch began."""


def reason_to_begin(
    epoch: Epoch | None,
    summary: NewestSummary,
    topics: Sequence[TopicSummary],
    moment: Moment,
    idle: timedelta,
) -> str | None:
    """Return why a new epoch begins now; None = the current one continues."""
    if epoch is None:
        return "first turn"
    if epoch["strategy"] != moment.strategy:
        return "strategy changed"
    if moment.core_memory_reason:
        return moment.core_memory_reason
    if moment.core_memory_grew and _rested(moment, idle):
        return "idle"
    if moment.strategy == "topics":
        return "topics archived" if list(topics) != epoch["topics"] else None
    return _new_summary_shown(epoch, summary, moment, idle) if moment.strategy == "summary" else None


def _new_summary_shown(epoch: Epoch, summary: NewestSummary, moment: Moment, idle: timedelta) -> str | None:
    if summary.version < epoch["summary_version"]:
        return "summary withdrawn"
    if summary.rewritten_version > epoch["summary_version"]:
        return "late messages"
    if summary.version == epoch["summary_version"]:
        return None  # a new one would be the same
    if moment.over_high_water:
        return "history over its mark"
    return "idle" if _rested(moment, idle) else None


def _rested(moment: Moment, idle: timedelta) -> bool:
    return moment.last_message_at is not None and moment.now - moment.last_message_at >= idle


def begin(
    epoch: Epoch | None,
    reason: str,
    summary: NewestSummary,
    topics: Sequence[TopicSummary],
    moment: Moment,
) -> Epoch:
    """Return a new epoch, which starts from the newest summary or topics."""
    summarised = moment.strategy == "summary"
    core = moment.core_memory or {}
    return Epoch(
        number=epoch["number"] + 1 if epoch else 1,
        strategy=moment.strategy,
        reason=reason,
        begun_at=moment.now,
        summary=summary.text if summarised else "",
        summary_version=summary.version if summarised else 0,
        topics=list(topics) if moment.strategy == "topics" else [],
        history_from=summary.through if summarised else None,
        core_memory={section: block["content"] for section, block in core.items()},
        core_versions={section: block["version"] for section, block in core.items()},
        persona_card="",
        prefix=epoch["prefix"] if epoch else [],
    )


def messages_after(
    history: Sequence[HistoryMessage], place: Place | None, late: frozenset[str]
) -> list[HistoryMessage]:
    """Return the messages after a place, and late ones that no summary covers."""
    if place is None:
        return list(history)
    return [
        message
        for message in history
        if (message["created_at"], message["message_id"]) > place or message["message_id"] in late
    ]
