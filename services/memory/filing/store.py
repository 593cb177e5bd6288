"""Stores of filing: the turns that wait for it and when, what was said in them, and records of what was filed.

A record names the turns that it covers. It is written in the transaction of their changes, so that neither exists
without the other. A turn waits from its end until it is filed, however long that takes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.memory.core.blocks import Owner
from services.memory.filing.prompt import Batch, Said, known_changes
from services.memory.model import ChangeRequest
from services.memory.operations import LAST_CHANGE, Operation, OperationLog, Trigger
from services.memory.reading.mood import Felt
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.shared_reads import Query

FILED = "memory_filing"
"""Type under which the log of operations records what was filed."""
_MOST_CHARACTERS = 8_000
"""Maximum characters of the user's messages that one call covers; one turn is always covered."""
_EARLIER = 6
"""Number of earlier messages of a conversation that are shown before the new ones."""

# A turn waits from its end on, and again when a removal from its messages is undone.
_WAITING: LiteralString = """
SELECT t.id, c.id, c.expert_id, c.space_id
FROM conversations c
JOIN experts x ON x.id = c.expert_id AND x.tenant_id = c.tenant_id
JOIN turns t ON t.conversation_id = c.id AND t.tenant_id = c.tenant_id
WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND t.to_file AND t.status = 'completed'
  AND NOT 'memory_filing' = ANY(x.parts_off)
  AND NOT EXISTS (SELECT FROM messages m WHERE m.id = t.user_message_id AND m.branch_id IS NOT NULL)
ORDER BY t.started_at, t.id LIMIT 200
"""
_FILED: LiteralString = """
WITH told AS (
    UPDATE memory_operations SET untold = true
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = ANY(%(done)s)
), story AS (
    UPDATE conversations SET in_story = id IS NOT DISTINCT FROM %(story_in)s
    WHERE tenant_id = %(tenant_id)s AND id = ANY(%(conversation_ids)s)
      AND in_story <> (id IS NOT DISTINCT FROM %(story_in)s)
), released AS (  -- what was held as it came, and belongs to no story
    UPDATE episodes e SET held_at = NULL, indexed_at = NULL
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NULL AND e.held_at IS NOT NULL
      AND e.retraction_id IS NULL AND e.source_message_ids && ARRAY(
          SELECT t.user_message_id FROM turns t WHERE t.id = ANY(%(turn_ids)s) AND t.id <> ALL(%(story)s))
), felt AS (
    UPDATE messages SET feeling = %(feeling)s, feeling_span = %(feeling_span)s
    WHERE tenant_id = %(tenant_id)s AND id = %(felt_in)s AND retracted_at IS NULL
      AND (SELECT u.mood FROM users u WHERE u.id = %(user_id)s)
      AND NOT EXISTS (SELECT FROM experts x WHERE x.id = %(expert_id)s AND 'mood' = ANY(x.parts_off))
), asked AS (
    UPDATE users SET mood = %(mood)s
    WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s AND mood <> %(mood)s::boolean
)
UPDATE turns SET to_file = false WHERE id = ANY(%(turn_ids)s) AND tenant_id = %(tenant_id)s
"""
_LAST: LiteralString = """
SELECT (SELECT max(t.started_at) FROM conversations c JOIN turns t ON t.conversation_id = c.id
        WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s),
       (SELECT max(at) FROM memory_operations
        WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_filing'
          AND results->>'by' = 'model')
"""
# What may be remembered of them: what was forgotten or left out is not shown.
_SAID: LiteralString = """
SELECT m.id, t.id AS turn_id, m.conversation_id, m.role, m.content, m.created_at, stored.origin,
       stored.parts IS NOT NULL AND stored.parts <> '[]' OR EXISTS (
           SELECT FROM messages asked WHERE asked.id = t.user_message_id AND asked.parts <> '[]') AS has_images,
       u.timezone, CASE WHEN stored.origin IS NULL THEN '' ELSE stored.content END AS whole, stored.foreign_spans
FROM turns t
JOIN remembered_messages m ON m.id IN (t.user_message_id, t.assistant_message_id) AND m.completed
JOIN messages stored ON stored.id = m.id
JOIN conversations c ON c.id = m.conversation_id JOIN users u ON u.id = c.user_id
WHERE t.tenant_id = %(tenant_id)s AND t.id = ANY(%(turn_ids)s)
ORDER BY m.created_at, m.id
"""
_BEFORE: LiteralString = """
SELECT before.*
FROM unnest(%(conversation_ids)s::uuid[], %(first_ids)s::uuid[]) WITH ORDINALITY AS new (id, first_id, place)
CROSS JOIN LATERAL (
    SELECT m.id, NULL::uuid AS turn_id, m.conversation_id, m.role,
           CASE WHEN starts_with(m.content, '~[1.') THEN m.content ELSE left(m.content, 1000) END AS content,
           m.created_at, stored.origin, stored.parts <> '[]' AS has_images, '' AS timezone,
           CASE WHEN stored.origin IS NULL THEN '' ELSE stored.content END AS whole, stored.foreign_spans
    FROM remembered_messages m JOIN messages stored ON stored.id = m.id
    WHERE m.conversation_id = new.id AND m.tenant_id = %(tenant_id)s AND m.completed
      AND (m.created_at, m.id) < (SELECT created_at, id FROM messages WHERE id = new.first_id)
    ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
) AS before
ORDER BY new.place, before.created_at, before.id
"""
# With what was removed since: no line may name it.
_DONE: LiteralString = """
SELECT o.field, o.query, o.results->'items', o.turn_id = ANY(%(turn_ids)s) IS TRUE FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_command' AND o.undone_at IS NULL
  AND (o.turn_id = ANY(%(turn_ids)s) OR o.field = 'forget' AND o.at >= (
      SELECT min(t.accepted_at) FROM turns t WHERE t.id = ANY(%(turn_ids)s) AND t.tenant_id = %(tenant_id)s))
ORDER BY o.at, o.id
"""
_STATE: LiteralString = f"""
SELECT ({LAST_CHANGE}), EXISTS (
    SELECT FROM memory_operations
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
      AND results->>'state' = 'waiting'
)
"""  # noqa: S608 — a constant
_STORY: LiteralString = """
SELECT id FROM conversations
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(conversation_ids)s) AND in_story ORDER BY created_at DESC LIMIT 1
"""


@dataclass(frozen=True)
class WaitingTurns:
    """The turns of a user that are not filed yet."""

    owner: Owner
    """Owner of the oldest waiting turn."""
    turns: Mapping[UUID, UUID]
    """The waiting turns of this owner with their conversations, the oldest first."""
    others: int
    """Number of waiting turns of other experts and spaces."""


class FilingStore:
    """Reads what is to be filed, and records what was filed."""

    def __init__(self, database: Database, log: OperationLog) -> None:
        self.database = database
        self._log = log

    async def waiting(self, tenant_id: UUID, user_id: UUID) -> WaitingTurns | None:
        """Return the turns of a user that are not filed yet; None if all are filed."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        found = await self.database.read(tenant_id, Query(_WAITING, values, tuple_row))
        if not found:
            return None
        owner = Owner(tenant_id, user_id, found[0][2], found[0][3])
        own = {row[0]: row[1] for row in found if row[2:] == found[0][2:]}
        return WaitingTurns(owner, own, len(found) - len(own))

    async def last(self, tenant_id: UUID, user_id: UUID) -> tuple[datetime | None, datetime | None]:
        """Return when the user last said something, and when a model was last asked about the user's messages."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        [row] = await self.database.read(tenant_id, Query(_LAST, values, tuple_row))
        return row[0], row[1]

    async def batch(self, waiting: WaitingTurns, most: int) -> Batch:
        """Return the oldest waiting turns, as many as one call covers, but at most `most`."""
        owner = waiting.owner
        values: dict[str, Any] = {**vars(owner), "turn_ids": list(waiting.turns)[:most]}
        # What is read later than the newest change tells at least what it changed.
        changes, found = await self.database.read_each(
            owner.tenant_id,
            Query(LAST_CHANGE, values, tuple_row),
            Query(_SAID, values, class_row(Said)),
            of_one_moment=False,
        )
        taken = _portion(values["turn_ids"], found)
        messages = _numbered([each for each in found if each.turn_id in taken])
        conversations = list(dict.fromkeys(waiting.turns[each] for each in taken))
        first: dict[UUID, UUID] = {}
        for each in messages.values():
            first.setdefault(each.conversation_id, each.id)
        values |= {
            "turn_ids": taken,
            "conversation_ids": [each for each in conversations if each in first],
            "first_ids": [first[each] for each in conversations if each in first],
            "limit": _EARLIER,
        }
        earlier, done, story = await asyncio.gather(
            self.database.read(owner.tenant_id, Query(_BEFORE, values, class_row(Said))),
            self.database.read(owner.tenant_id, Query(_DONE, values, tuple_row)),
            self.database.read(owner.tenant_id, Query(_STORY, values, tuple_row)),
        )
        return Batch(
            owner=owner,
            turn_ids=taken,
            conversations=conversations,
            messages=messages,
            earlier=earlier,
            done=known_changes(done),
            story_in=story[0][0] if story else None,
            last_change=changes[0][0] if changes else None,
        )

    @staticmethod
    async def state(owner: Owner, connection: Connection) -> tuple[UUID | None, bool]:
        """Return the newest change of the user's memory, and whether any proposal waits, read in the caller's
        transaction."""
        row = await (await connection.execute(_STATE, vars(owner))).fetchone()
        assert row is not None  # noqa: S101 — it has no table of its own
        return row[0], row[1]

    async def record(
        self,
        connection: Connection,
        batch: Batch,
        filed: Sequence[UUID],
        done: Sequence[UUID],
        *,
        by: str,
        counts: Mapping[str, int],
        story: Sequence[UUID],
        story_in: UUID | None,
        mood: Felt | None,
    ) -> None:
        """Record in the caller's transaction which turns of a batch are filed.

        `done` are the operations by which they were filed; the user's next turn reports them. `story` are the
        turns held back because they belong to a story; all others can be recalled. `story_in` is the conversation
        in which a story continues. `mood` is how the user feels, or a request not to note feelings.
        """
        owner = batch.owner
        results = {**counts, "by": by, "turns": [str(each) for each in filed], "story": story_in is not None}
        trigger = Trigger(
            "filing", conversation_id=batch.conversations[-1], expert_id=owner.expert_id, space_id=owner.space_id
        )
        await self._log.append(
            connection, owner.tenant_id, owner.user_id, Operation(FILED, results=results), trigger
        )
        values = {**vars(owner), "turn_ids": list(filed), "done": list(done), "story": list(story)}
        asks = mood.feeling if mood and mood.feeling in {"off", "on"} else None
        feeling = {
            "felt_in": batch.messages[mood.message].id if mood and not asks else None,
            "feeling": mood.feeling if mood else None,
            "feeling_span": list(mood.span) if mood else None,
            "mood": asks == "on" if asks else None,
        }
        conversations = {"conversation_ids": list(batch.conversations), "story_in": story_in}
        await connection.execute(_FILED, values | conversations | feeling)


def request_of(owner: Owner, message: Said) -> ChangeRequest:
    """Return a change request for the owner of a message, with the message as its cause."""
    ids = (message.id, message.conversation_id, message.turn_id, owner.expert_id, owner.space_id)
    return ChangeRequest(owner, message.conversation_id, message.id, Trigger("filing", *ids))


def _portion(turn_ids: Sequence[UUID], messages: Sequence[Said]) -> list[UUID]:
    """Return the first turns, up to the number of characters that one call covers."""
    taken, characters = list[UUID](), 0
    for turn_id in turn_ids:
        characters += sum(
            len(each.content) for each in messages if each.turn_id == turn_id and each.role == "user"
        )
        if taken and characters > _MOST_CHARACTERS:
            break
        taken.append(turn_id)
    return taken


def _numbered(messages: Sequence[Said]) -> dict[str, Said]:
    """Return messages by short ids: u1, … of the user, o1, … of other participants, a1, … of the assistant."""
    numbered: dict[str, Said] = {}
    counts = dict.fromkeys("uoa", 0)
    for each in messages:
        whose = "u" if each.is_users else "o" if each.role == "user" else "a"
        counts[whose] += 1
        numbered[f"{whose}{counts[whose]}"] = each
    return numbered
