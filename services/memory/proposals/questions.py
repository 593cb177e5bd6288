"""Questions about changes that wait: a prompt names one, and the next message may say yes.

At most three wait for each expert and space, and they are asked and answered only there.

The prompt of one turn names a question, so that the answer asks it; the prompt of the next turn names it with its
id, so that it can be settled. Afterwards it waits only in the list of proposals, until it is settled there or
makes room for a newer one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.text.language import folded

OPEN: LiteralString = """
SELECT o.id, o.field AS kind, o.results->>'state' AS state, coalesce(o.new_value->>'text', '') AS text,
       coalesce(o.new_value->>'replaces', '') AS replaces, coalesce(o.new_value->>'memory', '') AS memory,
       (o.trigger->>'expert_id')::uuid AS expert_id, o.space_id, (o.results->>'asked')::uuid AS asked_in,
       (o.results->>'kept')::uuid AS kept, (o.results->>'dropped')::uuid AS dropped,
       o.results->>'kept_value' AS kept_value, o.results->>'dropped_value' AS dropped_value,
       coalesce(o.results->>'by', '') AS by, o.turn_id
FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_proposal'
  AND o.new_value IS NOT NULL
"""
OF_OWNER: LiteralString = (
    "AND o.trigger->>'expert_id' = %(expert_id)s::text AND o.space_id IS NOT DISTINCT FROM %(space_id)s"
)
_WAITING: LiteralString = f"{OPEN} {OF_OWNER} AND o.results->>'state' = 'waiting' AND NOT o.results ? 'kept'"
_IN_ORDER: LiteralString = f"{_WAITING} ORDER BY o.at, o.id"
# The one that the turn before has asked comes first.
_QUESTION: LiteralString = f"""
WITH before AS (
    SELECT t.id FROM turns t
    WHERE t.conversation_id = %(conversation_id)s AND t.tenant_id = %(tenant_id)s
      AND t.user_message_id <> %(message_id)s
    ORDER BY t.started_at DESC, t.id DESC LIMIT 1
)
{_WAITING}
  AND (NOT o.results ? 'asked' OR (o.results->>'asked')::uuid = (SELECT id FROM before))
ORDER BY NOT o.results ? 'asked', o.at, o.id
"""  # noqa: S608 — a constant

SETTLE: LiteralString = """
UPDATE memory_operations SET results = jsonb_set(results, '{state}', to_jsonb(%(state)s::text))
WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
  AND results->>'state' = 'waiting' AND new_value IS NOT NULL
RETURNING id
"""


ProposalKind = Literal["remember", "forget", "duplicate", "contradiction"]
State = Literal["waiting", "accepted", "rejected", "undone", "expired"]
MOST_OPEN = 3
"""Maximum number of changes that wait for a user under one expert in one space, not counting pairs of memories."""

_ASKED: LiteralString = """
UPDATE memory_operations SET results = results || jsonb_build_object('asked', %(turn_id)s::text)
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND type = 'memory_proposal' AND NOT results ? 'asked'
"""
_GONE: LiteralString = """
SELECT wanted.id::text FROM unnest(%(ids)s::uuid[]) AS wanted (id)
WHERE NOT EXISTS (
    SELECT FROM remembered_episodes e
    WHERE e.id = wanted.id AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s)
  AND NOT EXISTS (SELECT FROM remembered_messages m WHERE m.id = wanted.id AND m.tenant_id = %(tenant_id)s)
"""


@dataclass(frozen=True)
class OpenQuestion:
    """A change of memory that waits for the user."""

    id: UUID
    kind: ProposalKind
    state: State
    text: str
    replaces: str
    memory: str
    """Ids of the memories that would go, separated by commas."""
    expert_id: UUID
    space_id: UUID | None
    asked_in: UUID | None
    """Turn whose prompt has named it; None if it was not asked yet."""
    kept: UUID | None = None
    """The one of two memories that stays, or the section of a value, which `kept_value` names."""
    dropped: UUID | None = None
    kept_value: str | None = None
    dropped_value: str | None = None
    by: str = ""
    """`feedback` if it is a wish about answers that came from a thumb down; otherwise empty."""
    turn_id: UUID | None = None
    """Turn in which it arose."""


class OpenQuestions:
    """Chooses the question that a prompt names, and closes questions that are overtaken."""

    def __init__(self, database: Database, values: CoreValues) -> None:
        self._database = database
        self._values = values

    async def of_turn(self, owner: Owner, conversation_id: UUID, message_id: UUID) -> OpenQuestion | None:
        """Return the question that a turn is to ask, or that the previous turn has asked; None if there is
        none."""
        values = {**vars(owner), "conversation_id": conversation_id, "message_id": message_id}
        found = await self._database.fetch(owner.tenant_id, _QUESTION, values, class_row(OpenQuestion))
        overtaken = await self._overtaken(owner, found) if found else []
        return next((each for each in found if each.id not in overtaken), None)

    @staticmethod
    async def note_asked(connection: Connection, tenant_id: UUID, question_id: UUID, turn_id: UUID) -> None:
        """Note in the caller's transaction that a turn has asked a question."""
        await connection.execute(_ASKED, {"tenant_id": tenant_id, "id": question_id, "turn_id": turn_id})

    async def waiting(self, connection: Connection, owner: Owner) -> list[OpenQuestion]:
        """Return the waiting questions under an expert in a space, oldest first; overtaken ones are closed and
        left out.

        A question is overtaken if memory already says what it would add, if what it would change is gone, or if a
        newer question is about the same memory or says the same.
        """
        async with connection.cursor(row_factory=class_row(OpenQuestion)) as cursor:
            await cursor.execute(_IN_ORDER, vars(owner))
            found = await cursor.fetchall()
        if not found:
            return []
        overtaken = await self._overtaken(owner, found)
        await self._expire(connection, owner, overtaken)
        return [each for each in found if each.id not in overtaken]

    async def make_room(self, connection: Connection, owner: Owner) -> list[OpenQuestion]:
        """Close the oldest question if the maximum number wait; return the questions that still wait."""
        waiting = await self.waiting(connection, owner)
        surplus = waiting[: max(len(waiting) - MOST_OPEN + 1, 0)]
        await self._expire(connection, owner, [each.id for each in surplus])
        return waiting[len(surplus) :]

    async def _overtaken(self, owner: Owner, found: Sequence[OpenQuestion]) -> list[UUID]:
        read = await self._values.read(owner.tenant_id, owner.user_id)
        seen = {(owner.expert_id, None), (owner.expert_id, owner.space_id)}
        held = {folded(each.text) for each in read if each.holds and (each.expert_id, each.space_id) in seen}
        known = {"v" + each.digest[:12] for each in read if each.holds}
        named = {one for each in found for one in each.memory.split(",") if one}
        ids = [UUID(each) for each in named if not each.startswith("v")]
        values: dict[str, Any] = {**vars(owner), "ids": ids}
        gone = {each for each in named if each.startswith("v")} - known
        if ids:
            gone |= {row[0] for row in await self._database.fetch(owner.tenant_id, _GONE, values, tuple_row)}
        overtaken, newer = [], set[str]()
        for each in sorted(found, key=lambda one: one.id, reverse=True):  # ids increase with time
            same = {f"{each.kind} {folded(each.text)}", *(one for one in each.memory.split(",") if one)}
            is_said = each.kind == "remember" and folded(each.text) in held
            if is_said or not gone.isdisjoint(each.memory.split(",")) or not newer.isdisjoint(same):
                overtaken.append(each.id)
            newer |= same
        return overtaken

    async def _expire(self, connection: Connection, owner: Owner, ids: Sequence[UUID]) -> None:
        if ids:
            await connection.execute(SETTLE, {**vars(owner), "ids": list(ids), "state": "expired"})
