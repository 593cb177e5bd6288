"""The stored beginning of a conversation's prompts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from services.context import epochs
from services.context.epochs import NewestSummary
from services.memory.removal.exclusions import EXCLUDED_IDS
from state.prompt import Epoch, TopicSummary

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
       -- Where a newer message interrupted the answer, that was stored after the message.
       (SELECT CASE WHEN NOT a.completed THEN a.content END FROM messages a
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
class StoredPrefix:
    """A row of it; all None if there is nothing."""

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
        """What the next epoch would begin with."""
        at, message_id = self.covered_through_created_at, self.covered_through_message_id
        if self.summary is None or at is None or message_id is None:
            return epochs.NO_SUMMARY
        return NewestSummary(
            self.summary, self.summary_version or 0, (at, str(message_id)), self.rewritten_version or 0
        )
