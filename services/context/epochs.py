"""The stored beginning of a conversation's prompts, and the rules for when it may change.

Within an epoch the summary may be renewed any number of times; the prompt shows the epoch's own summary and the
messages after its covered point, so that it only grows at its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from services.memory.removal.exclusions import EXCLUDED_IDS
from state.prompt import ContextStrategy, CoreMemorySections, Epoch, HistoryMessage, TopicSummary

Place = tuple[datetime, str]
"""`created_at` and id of a message."""

# What the next epoch would begin with, and the current epoch.
BEGINNING: LiteralString = f"""
SELECT e.number, e.strategy, e.reason, e.begun_at, e.summary AS epoch_summary, e.summary_version AS epoch_version,
       e.topics AS epoch_topics, e.history_from_created_at, e.history_from_message_id, e.prefix,
       e.core_memory, e.core_versions, e.persona_card, e.ended_by,
       s.summary, s.summary_version, s.covered_through_created_at, s.covered_through_message_id,
       s.rewritten_version,
       CASE WHEN %(strategy)s::text = 'topics' THEN (
           SELECT jsonb_agg(jsonb_build_object('title', title, 'summary', summary) ORDER BY last_message_at, id)
           FROM (SELECT * FROM topics t WHERE t.conversation_id = c.id
                 ORDER BY last_message_at DESC, id DESC LIMIT %(most_topics)s) AS newest
       ) END AS topics,
       -- Where a newer message interrupted the answer, that was stored after the message. After a message that was
       -- refused, the answer may be the reason.
       (SELECT CASE WHEN NOT a.completed AND (
            SELECT q.completed FROM turns t JOIN messages q ON q.id = t.user_message_id WHERE t.id = a.turn_id
        ) IS NOT FALSE THEN a.content END FROM messages a
        WHERE a.conversation_id = c.id AND a.tenant_id = c.tenant_id AND a.role = 'assistant'
          AND a.retracted_at IS NULL AND a.branch_id IS NULL
        ORDER BY a.created_at DESC, a.id DESC LIMIT 1) AS cut_off,
       ({EXCLUDED_IDS}) AS excluded
FROM conversations c
LEFT JOIN context_epochs e ON e.conversation_id = c.id
LEFT JOIN conversation_summaries s ON s.conversation_id = c.id
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
"""  # noqa: S608 — our own text only


@dataclass(frozen=True)
class CoreMemoryChanges:
    """Changes of core memory since an epoch began."""

    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    closed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Values that the epoch's beginning shows and that do not hold any more."""

    def __bool__(self) -> bool:
        return bool(self.added or self.closed)


NO_CHANGES = CoreMemoryChanges()


@dataclass(frozen=True)
class NewestSummary:
    """The values with which an epoch begins."""

    text: str = ""
    version: int = 0
    """Version of the summary; 0 = there is no summary."""
    through: Place | None = None
    """The last message that it covers."""
    rewritten_version: int = 0
    """The last version that included late messages."""


NO_SUMMARY = NewestSummary()


@dataclass(frozen=True)
class Moment:
    """Facts that decide whether a new epoch begins."""

    strategy: ContextStrategy
    now: datetime
    last_message_at: datetime | None
    over_high_water: bool
    """Whether the history of the epoch has passed its mark."""
    core_memory: CoreMemorySections | None = None
    """Core memory as it is now; None = unknown at the moment."""
    core_memory_reason: str | None = None
    """Why it requires a new epoch, if it does."""
    core_memory_grew: bool = False
    """Whether anything was added to it since the epoch began."""


def reason_to_begin(
    epoch: Epoch | None, summary: NewestSummary, topics: Sequence[TopicSummary], moment: Moment, idle: timedelta
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
        return None  # a new epoch would begin in the same way
    if moment.over_high_water:
        return "history over its mark"
    return "idle" if _rested(moment, idle) else None


def _rested(moment: Moment, idle: timedelta) -> bool:
    return moment.last_message_at is not None and moment.now - moment.last_message_at >= idle


def begin(
    epoch: Epoch | None, reason: str, summary: NewestSummary, topics: Sequence[TopicSummary], moment: Moment
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


@dataclass(frozen=True)
class StoredConversation:
    """A conversation as stored: what the next epoch would begin with, the current epoch, and the messages. None
    = there is nothing."""

    number: int | None = None
    strategy: Any = None
    reason: str | None = None
    begun_at: datetime | None = None
    epoch_summary: str | None = None
    epoch_version: int | None = None
    epoch_topics: list[TopicSummary] | None = None
    history_from_created_at: datetime | None = None
    history_from_message_id: UUID | None = None
    prefix: Any = None
    core_memory: Any = None
    core_versions: Any = None
    persona_card: str | None = None
    ended_by: str | None = None
    """Why a new epoch begins with the next prompt; None = the current one continues."""
    summary: str | None = None
    summary_version: int | None = None
    covered_through_created_at: datetime | None = None
    covered_through_message_id: UUID | None = None
    rewritten_version: int | None = None
    topics: list[TopicSummary] | None = None
    cut_off: str | None = None
    """The partial last answer, if it broke off."""
    excluded: list[UUID] | None = None
    """Ids of the memories and messages that the conversation never uses."""
    history: Sequence[HistoryMessage] = ()
    late: frozenset[str] = frozenset()
    """Ids of late messages that no summary covers."""

    def epoch(self) -> Epoch | None:
        """The current epoch; None = none has begun."""
        if self.number is None or self.begun_at is None:
            return None
        at, message_id = self.history_from_created_at, self.history_from_message_id
        return Epoch(
            number=self.number,
            strategy=self.strategy,
            reason=self.reason or "",
            begun_at=self.begun_at,
            summary=self.epoch_summary or "",
            summary_version=self.epoch_version or 0,
            topics=self.epoch_topics or [],
            history_from=(at, str(message_id)) if at and message_id else None,
            core_memory=self.core_memory or {},
            core_versions=self.core_versions or {},
            persona_card=self.persona_card or "",
            prefix=self.prefix or [],
        )

    def newest_summary(self) -> NewestSummary:
        """Return the summary with which the next epoch would begin."""
        at, message_id = self.covered_through_created_at, self.covered_through_message_id
        if self.summary is None or at is None or message_id is None:
            return NO_SUMMARY
        return NewestSummary(
            self.summary, self.summary_version or 0, (at, str(message_id)), self.rewritten_version or 0
        )
