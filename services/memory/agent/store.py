"""Storage of the memory agent: the turns that it reads, and the plans that make its work happen only once."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.memory.agent.triggers import REMEMBER
from services.memory.blocks import Owner
from services.memory.commands.statements import FILED
from services.memory.operations import Operation, OperationLog, Trigger
from services.memory.removal.hiding import COMMAND
from services.platform.connections import Connection
from services.platform.postgres import Database
from state.memory import ForeignOrigin

PLAN = "memory_agent"
"""Type under which the log of operations records that the agent processed a turn."""

# A correction that was carried out is itself no memory, but items filed of the corrected message may still be
# wrong: so its turn is processed, unlike any other retracted turn.
_EXCHANGE = """
SELECT t.id AS turn_id, t.tenant_id, c.user_id, c.expert_id, c.space_id, c.id AS conversation_id, u.timezone,
       said.id AS message_id, coalesce(
           (SELECT said.content FROM memory_operations o
            WHERE o.id = said.retraction_id AND o.tenant_id = t.tenant_id AND o.turn_id = t.id
              AND o.field = 'correct'), said.memory_text, said.content) AS said,
       answer.id AS answer_message_id, coalesce(answer.memory_text, answer.content) AS answer,
       answer.origin,
       said.created_at AS at,
       (SELECT e.id FROM episodes e
        WHERE e.conversation_id = c.id AND e.episode_type = 'turn' AND said.id = ANY(e.source_message_ids)
        LIMIT 1) AS episode_id,
       EXISTS (SELECT 1 FROM episodes e
               WHERE e.conversation_id = c.id AND e.episode_type = 'turn' AND said.id = ANY(e.source_message_ids)
                 AND e.held_at IS NOT NULL) AS is_held
FROM turns t
JOIN conversations c ON c.id = t.conversation_id
JOIN users u ON u.id = c.user_id
JOIN messages said ON said.id = t.user_message_id
JOIN messages answer ON answer.id = t.assistant_message_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND t.status = 'completed'
  AND NOT EXISTS (
      SELECT 1 FROM messages m
      LEFT JOIN memory_operations o ON o.id = m.retraction_id AND o.tenant_id = t.tenant_id
      WHERE m.id IN (said.id, answer.id) AND (m.branch_id IS NOT NULL OR m.retracted_at IS NOT NULL
        AND (o.field IS DISTINCT FROM 'correct' OR o.undone_at IS NOT NULL)))
"""

# The turns of the same user, expert and space whose jobs are waiting: one call covers them all, and their jobs
# then find nothing to do. The oldest come first, as many as a prompt holds.
_WAITING = """
SELECT DISTINCT (j.args->>'turn_id')::uuid AS turn_id
FROM procrastinate_jobs j
JOIN turns t ON t.id = (j.args->>'turn_id')::uuid AND t.tenant_id = %(tenant_id)s
JOIN conversations c ON c.id = t.conversation_id
WHERE j.task_name = %(task)s AND j.status = 'todo' AND j.lock = %(lock)s
  AND c.user_id = %(user_id)s AND c.expert_id = %(expert_id)s AND t.id <> %(turn_id)s
  AND c.space_id IS NOT DISTINCT FROM %(space_id)s
  AND t.status = 'completed' AND t.started_at BETWEEN %(at)s AND %(at)s + interval '10 minutes'
  AND NOT EXISTS (SELECT 1 FROM memory_operations o
                  WHERE o.conversation_id = t.conversation_id AND o.turn_id = t.id
                    AND o.tenant_id = t.tenant_id AND o.type = 'memory_agent')
ORDER BY turn_id LIMIT %(limit)s
"""

_EARLIER = """
SELECT m.role, CASE WHEN starts_with(m.content, '~[1.') THEN m.content ELSE left(m.content, 1000) END AS content,
       stored.origin
FROM remembered_messages m JOIN messages stored ON stored.id = m.id
WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.completed
  AND (m.created_at, m.id) < (SELECT created_at, id FROM messages WHERE id = %(message_id)s)
ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
"""

# A user's model calls are counted together for all experts.
_LAST_CALL = """
SELECT max(at) FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_agent' AND results->>'by' = 'model'
"""

_LAST_COMMAND = """
SELECT max(at) FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = %(command)s
"""

_NOTED = """
SELECT id, type, new_value, trigger->>'call', at FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND turn_id = %(turn_id)s
  AND trigger->>'actor' = 'memory_agent'
ORDER BY at, id
"""

# A command of a later turn that holds, and what it left of the message.
_CHANGED = """
SELECT t.id AS turn_id, t.tenant_id, c.user_id, c.expert_id, c.space_id, c.id AS conversation_id,
       said.id AS message_id, o.id AS command_id, said.content AS said,
       CASE WHEN said.retracted_at IS NULL THEN coalesce(said.memory_text, said.content) ELSE '' END AS "left"
FROM turns t
JOIN conversations c ON c.id = t.conversation_id
JOIN messages said ON said.id = t.user_message_id
JOIN memory_operations o ON o.id = said.retraction_id AND o.tenant_id = t.tenant_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND o.undone_at IS NULL
  AND o.turn_id IS DISTINCT FROM t.id
"""

# The resulting operations record what was done; a plan kept here would outlive their removal.
_FINISH = """
UPDATE memory_operations SET new_value = NULL WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""

_SHOWN_CHARACTERS = 1000


@dataclass(frozen=True)
class Exchange:
    """A completed turn: what the user said, and what was answered."""

    turn_id: UUID
    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    conversation_id: UUID
    timezone: str
    message_id: UUID
    said: str
    answer_message_id: UUID
    answer: str
    at: datetime
    episode_id: UUID | None
    """Episode of the turn; None if turns become no episodes."""
    is_held: bool = False
    """Whether the turn is kept out of recall until it is decided whether the message is a memory command."""
    space_id: UUID | None = None
    """The space of its conversation; None = none."""
    origin: ForeignOrigin | None = None
    """The least trusted origin of what the answer was made from; None = nothing foreign."""

    @property
    def owner(self) -> Owner:
        """Whose memory it is about."""
        return Owner(self.tenant_id, self.user_id, self.expert_id, self.space_id)


@dataclass(frozen=True)
class ChangedTurn:
    """A turn whose message was corrected or forgotten by a command."""

    turn_id: UUID
    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    conversation_id: UUID
    message_id: UUID
    command_id: UUID
    said: str
    left: str
    """What of it may be remembered; empty = nothing."""
    space_id: UUID | None = None

    @property
    def owner(self) -> Owner:
        """Whose memory it is about."""
        return Owner(self.tenant_id, self.user_id, self.expert_id, self.space_id)


@dataclass(frozen=True)
class EarlierMessage:
    """A message before an exchange."""

    role: Literal["user", "assistant"]
    content: str
    origin: ForeignOrigin | None = None
    """The least trusted origin of what it was made from; None = nothing foreign."""


@dataclass(frozen=True)
class StoredPlan:
    """What the agent has already done about a turn."""

    plan_id: UUID | None = None
    """None = it has not decided yet."""
    plan: list[dict[str, Any]] | None = None
    """What remains to be done; None = all is done."""
    planned_at: datetime | None = None
    calls: dict[str, UUID | None] = field(default_factory=dict)
    """Indexes of the operations carried out, each with the episode that it wrote."""


class AgentStore:
    """Reads turns for the agent, and stores its plans."""

    def __init__(self, database: Database, log: OperationLog) -> None:
        self._database = database
        self._log = log

    async def exchange(self, tenant_id: UUID, turn_id: UUID) -> Exchange | None:
        """Return a turn's two messages; None if it is not completed, or gone.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "turn_id": turn_id}
        found = await self._database.fetch(tenant_id, _EXCHANGE, values, class_row(Exchange))
        return found[0] if found else None

    async def changed(self, tenant_id: UUID, turn_id: UUID) -> ChangedTurn | None:
        """Return what a later command left of a turn's message; None if none changed it.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "turn_id": turn_id}
        found = await self._database.fetch(tenant_id, _CHANGED, values, class_row(ChangedTurn))
        return found[0] if found else None

    async def filed(self, changed: ChangedTurn) -> list[tuple[str, Any, Any]]:
        """Return section, old and new content of each change of core memory because of a turn's message.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {**vars(changed), "message_ids": [str(changed.message_id)]}
        return await self._database.fetch(changed.tenant_id, FILED, values, tuple_row)

    async def waiting(self, exchange: Exchange, *, limit: int) -> list[Exchange]:
        """Return other turns of the same user, expert and space whose jobs are waiting, oldest first.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {**vars(exchange), "task": REMEMBER, "lock": f"{REMEMBER}:{exchange.user_id}", "limit": limit}
        rows = await self._database.fetch(exchange.tenant_id, _WAITING, values, tuple_row)
        found = [await self.exchange(exchange.tenant_id, row[0]) for row in rows]
        return sorted((each for each in found if each is not None), key=lambda each: (each.at, each.message_id))

    async def earlier(self, exchange: Exchange, *, limit: int) -> list[EarlierMessage]:
        """Return the messages before an exchange in its conversation, oldest first.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {**vars(exchange), "limit": limit}
        found = await self._database.fetch(exchange.tenant_id, _EARLIER, values, class_row(EarlierMessage))
        return [replace(each, content=each.content[:_SHOWN_CHARACTERS]) for each in reversed(found)]

    async def last_call(self, exchange: Exchange) -> datetime | None:
        """Return when the model was last asked about the user; None if never.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        rows = await self._database.fetch(exchange.tenant_id, _LAST_CALL, vars(exchange), tuple_row)
        at: datetime | None = rows[0][0]
        return at

    async def last_command(self, exchange: Exchange) -> datetime | None:
        """Return when the user last had memory forget or correct something; None if they never did.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {**vars(exchange), "command": COMMAND}
        rows = await self._database.fetch(exchange.tenant_id, _LAST_COMMAND, values, tuple_row)
        at: datetime | None = rows[0][0]
        return at

    async def noted(self, exchange: Exchange) -> StoredPlan:
        """Return what was planned and done about a turn.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        rows = await self._database.fetch(exchange.tenant_id, _NOTED, vars(exchange), tuple_row)
        plan_id, plan, planned_at, calls = None, None, None, {}
        for row_id, kind, value, call, at in rows:
            if kind == PLAN:
                plan_id, plan, planned_at = row_id, value, at
            elif kind in ("episode_insert", "core_memory_change") and call is not None:
                calls[call] = UUID(value["id"]) if kind == "episode_insert" and value else None
        return StoredPlan(plan_id, plan, planned_at, calls)

    async def note_plan(
        self,
        exchange: Exchange,
        others: Sequence[Exchange],
        plan: Sequence[dict[str, Any]],
        by: str,
        trigger: Callable[[Exchange], Trigger],
    ) -> UUID:
        """Store the plan for a turn before carrying it out; an empty plan is done at once.

        `others` are further turns covered by the plan: nothing more is done about them.

        Raises:
            NotFound: the user, or the conversation, was erased.
            DatabaseUnavailable: the database does not answer.
        """
        operation = Operation(PLAN, new_value=list(plan) or None, results={"by": by, "operations": len(plan)})
        covered = Operation(PLAN, results={"by": "another turn", "turn_id": str(exchange.turn_id)})
        whose = {"tenant_id": exchange.tenant_id, "user_id": exchange.user_id}
        async with self._database.tenant(exchange.tenant_id) as connection:
            for other in others:
                await self._log.append(connection, operation=covered, trigger=trigger(other), **whose)
            return await self._log.append(connection, operation=operation, trigger=trigger(exchange), **whose)

    def transaction(self, exchange: Exchange | ChangedTurn) -> AbstractAsyncContextManager[Connection]:
        """Open a transaction of the turn's tenant.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return self._database.tenant(exchange.tenant_id)

    async def finish(self, exchange: Exchange, plan_id: UUID) -> None:
        """Record that a plan was carried out, and delete its content.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        async with self._database.tenant(exchange.tenant_id) as connection:
            await connection.execute(_FINISH, {"id": plan_id, "tenant_id": exchange.tenant_id})
