"""Archived topics in PostgreSQL, and the messages that are in no topic."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words, WordsInJson
from services.errors import Conflict
from services.platform.authorship import made_by
from services.platform.postgres import Database
from services.platform.shared_reads import Query, page_after
from services.summaries.prompts import SaidMessage

_CONVERSATION = """
SELECT c.user_id, c.expert_id, c.space_id, u.timezone, e.context_strategy AS strategy, e.min_archive_messages,
       c.retracted_at
FROM conversations c JOIN experts e ON e.id = c.expert_id JOIN users u ON u.id = c.user_id
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
"""

# The oldest messages, as many as the model's context can hold.
_UNARCHIVED = """
SELECT id, role, content, created_at, speaker FROM (
    SELECT m.id, m.role, m.content, m.created_at, m.speaker,
           sum(m.token_count) OVER (ORDER BY m.created_at, m.id) AS tokens, e.context_window
    FROM remembered_messages m
    JOIN conversations c ON c.id = m.conversation_id JOIN experts e ON e.id = c.expert_id
    WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s
      AND m.completed AND m.topic_id IS NULL
) AS summed
WHERE tokens <= context_window * 0.9
ORDER BY created_at, id
"""

# As many messages as a prompt can hold at most.
_IS_FULL = """
SELECT sum(m.token_count) >= e.context_threshold * e.context_window
FROM conversations c JOIN experts e ON e.id = c.expert_id
JOIN LATERAL (
    SELECT token_count FROM remembered_messages
    WHERE conversation_id = c.id AND tenant_id = %(tenant_id)s AND completed AND topic_id IS NULL
    ORDER BY created_at, id LIMIT 5000
) AS m ON true
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
GROUP BY e.id, e.tenant_id
"""

_LOCK = """
SELECT retracted_at IS NOT DISTINCT FROM %(retracted_at)s::timestamptz FROM conversations
WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s FOR UPDATE
"""

_ADD = """
INSERT INTO topics (id, tenant_id, conversation_id, user_id, expert_id, title, summary, keywords, message_count,
    first_message_id, last_message_id, first_message_at, last_message_at, made_by)
SELECT %(id)s, c.tenant_id, c.id, c.user_id, c.expert_id, %(title)s, %(summary)s, %(keywords)s, %(count)s,
    %(first_id)s, %(last_id)s, %(first_at)s, %(last_at)s, %(made_by)s
FROM conversations c WHERE c.id = %(conversation_id)s
"""

_LINK = """
UPDATE messages SET topic_id = %(id)s
WHERE id = ANY(%(message_ids)s) AND topic_id IS NULL AND retracted_at IS NULL AND branch_id IS NULL
"""

_LIST = """
SELECT id, title, summary, keywords, message_count, first_message_id, last_message_id, first_message_at,
       last_message_at, created_at
FROM topics
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND (%(after_at)s::timestamptz IS NULL OR (last_message_at, id) > (%(after_at)s, %(after_id)s::uuid))
ORDER BY last_message_at, id LIMIT %(limit)s
"""


@dataclass(frozen=True)
class StoredTopic:
    """An archived topic."""

    id: UUID
    title: str
    summary: str
    keywords: list[str]
    message_count: int
    first_message_id: UUID
    last_message_id: UUID
    first_message_at: datetime
    last_message_at: datetime
    created_at: datetime


@dataclass(frozen=True)
class Unarchived:
    """The part of a conversation in no topic, oldest first, as much as the model's context holds."""

    strategy: str
    min_archive_messages: int
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    timezone: str
    """Time zone of the user."""
    messages: list[SaidMessage] = field(default_factory=list)
    retracted_at: datetime | None = None
    """Time of the last retraction that was known before the messages were read."""


@dataclass(frozen=True)
class NewTopic:
    """A topic to be archived, with its messages in order."""

    title: str
    summary: str
    keywords: Sequence[str]
    messages: Sequence[SaidMessage]


class TopicStore:
    """Reads and writes topics of a tenant's conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unarchived(self, tenant_id: UUID, conversation_id: UUID) -> Unarchived | None:
        """Return the messages that could be archived; None if the conversation is gone."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        found, messages = await self._database.fetch_each(
            tenant_id,
            Query(_CONVERSATION, values, class_row(Unarchived)),
            Query(_UNARCHIVED, values, class_row(SaidMessage)),
        )
        return replace(found[0], messages=messages) if found else None

    async def is_full(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Return whether the messages in no topic would fill a prompt."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        found = await self._database.fetch(tenant_id, _IS_FULL, values, tuple_row)
        return bool(found and found[0][0])

    async def archive(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        topics: Sequence[NewTopic],
        *,
        retracted_at: datetime | None = None,
    ) -> int:
        """Store the topics and link their messages, all or nothing; return how many topics were stored.

        Nothing is stored if a message is already in a topic, because another process was faster. Raises `Conflict`
        if something was retracted after `retracted_at`, the last retraction known when messages were read.
        """
        values: dict[str, Any] = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "retracted_at": retracted_at,
        }
        async with self._database.tenant(tenant_id) as connection:
            unchanged = await (await connection.execute(_LOCK, values)).fetchone()
            if unchanged is not None and not unchanged[0]:
                raise Conflict("Something in the conversation was retracted since its messages were read.")
            for topic in topics:
                values = {"tenant_id": tenant_id, **_values(conversation_id, topic)}
                await connection.execute(_ADD, values)
                linked = await connection.execute(_LINK, values)
                if linked.rowcount != len(topic.messages):
                    await connection.execute("ROLLBACK")
                    return 0
        return len(topics)

    async def topics(
        self, tenant_id: UUID, conversation_id: UUID, *, after: tuple[datetime, UUID] | None = None, limit: int
    ) -> list[StoredTopic]:
        """Return topics, oldest first; `after` = `last_message_at` and id of the last topic seen."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, **page_after(after, limit)}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(StoredTopic))


def _values(conversation_id: UUID, topic: NewTopic) -> dict[str, Any]:
    first, last = topic.messages[0], topic.messages[-1]
    return {
        "id": uuid7(),
        "conversation_id": conversation_id,
        "title": Words(topic.title),
        "summary": Words(topic.summary),
        "keywords": WordsInJson(list(topic.keywords)),
        "count": len(topic.messages),
        "first_id": first.id,
        "last_id": last.id,
        "first_at": first.created_at,
        "last_at": last.created_at,
        "message_ids": [message.id for message in topic.messages],
        "made_by": Jsonb(made_by()),
    }
