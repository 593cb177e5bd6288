"""What the memory agent reads of a turn, and the plan that makes what it does happen once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row, tuple_row

from services.errors import NotFound
from services.memory.blocks import Owner
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.postgres import Database

PLAN = "memory_agent"
"""Type under which the agent's visit to a turn stands in the log of operations."""

_EXCHANGE = """
SELECT t.id AS turn_id, t.tenant_id, c.user_id, c.expert_id, c.id AS conversation_id, u.timezone,
       said.id AS message_id, said.content AS said, answer.id AS answer_message_id, answer.content AS answer,
       said.created_at AS at,
       (SELECT e.id FROM episodes e
        WHERE e.conversation_id = c.id AND e.episode_type = 'turn' AND said.id = ANY(e.source_message_ids)
        LIMIT 1) AS episode_id
FROM turns t
JOIN conversations c ON c.id = t.conversation_id
JOIN users u ON u.id = c.user_id
JOIN remembered_messages said ON said.id = t.user_message_id
JOIN remembered_messages answer ON answer.id = t.assistant_message_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND t.status = 'completed'
"""

_NOTED = """
SELECT id, type, new_value, trigger->>'call' FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND turn_id = %(turn_id)s
  AND trigger->>'actor' = 'memory_agent'
ORDER BY at, id
"""

# What was planned stands in the operations that came of it; here it would outlive their removal.
_FINISH = """
UPDATE memory_operations SET new_value = NULL WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""


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
    """Of the turn; None where turns become no episodes."""

    @property
    def owner(self) -> Owner:
        """Whose memory it is about."""
        return Owner(self.tenant_id, self.user_id, self.expert_id)


@dataclass(frozen=True)
class Noted:
    """What the agent has done about a turn before."""

    plan_id: UUID | None = None
    """None = it has not decided yet."""
    plan: list[dict[str, Any]] | None = None
    """What is to be done; None = it is done."""
    calls: dict[str, UUID | None] = field(default_factory=dict)
    """Tool calls that were carried out, each with the episode that it wrote."""


class AgentStore:
    """Reads turns for the agent, and keeps its plans."""

    def __init__(self, database: Database, log: OperationLog) -> None:
        self._database = database
        self._log = log

    async def exchange(self, tenant_id: UUID, turn_id: UUID) -> Exchange | None:
        """A turn's own two messages; None where it is not completed, or gone.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "turn_id": turn_id}
        found = await self._database.fetch(tenant_id, _EXCHANGE, values, class_row(Exchange))
        return found[0] if found else None

    async def noted(self, exchange: Exchange) -> Noted:
        """What was planned and done about a turn.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        rows = await self._database.fetch(exchange.tenant_id, _NOTED, vars(exchange), tuple_row)
        plan_id, plan, calls = None, None, {}
        for row_id, kind, value, call in rows:
            if kind == PLAN:
                plan_id, plan = row_id, value
            elif kind in ("episode_insert", "core_memory_update") and call is not None:
                calls[call] = UUID(value["id"]) if kind == "episode_insert" and value else None
        return Noted(plan_id, plan, calls)

    async def note_plan(
        self, exchange: Exchange, plan: Sequence[dict[str, Any]], by: str, trigger: Trigger
    ) -> UUID:
        """Keep what is to be done about a turn, before any of it is; with nothing to do, it is done.

        Raises:
            NotFound: the user, or the conversation, was erased.
            DatabaseUnavailable: the database does not answer.
        """
        operation = Operation(PLAN, new_value=list(plan) or None, results={"by": by, "operations": len(plan)})
        try:
            async with self._database.tenant(exchange.tenant_id) as connection:
                return await self._log.append(
                    connection,
                    tenant_id=exchange.tenant_id,
                    user_id=exchange.user_id,
                    operation=operation,
                    trigger=trigger,
                )
        except psycopg.errors.ForeignKeyViolation:
            raise NotFound("There is no such user, or conversation, any more.") from None

    async def finish(self, exchange: Exchange, plan_id: UUID) -> None:
        """Note that all of a plan was done, and forget what it said.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        async with self._database.tenant(exchange.tenant_id) as connection:
            await connection.execute(_FINISH, {"id": plan_id, "tenant_id": exchange.tenant_id})
