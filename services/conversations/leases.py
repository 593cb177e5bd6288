"""Leases of unfinished turns: which process runs each turn, which may run next, and which must stop.

Every unfinished turn belongs to a process, which renews its lease. A process that is gone renews nothing, so the
others find its turns.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, tuple_row

from services.conversations.turn import LEASE, StopReason, with_variants
from services.conversations.turn_sql import ABANDONED, OWN, next_moment, of_expert
from services.conversations.turn_values import adopted_input, turn_of_row
from services.experiments.assignment import RUNNING, assign, running_experiments
from services.jobs.records import ClockWatch
from services.platform.postgres import Database
from state.turn import OpenTurn

_RENEW: LiteralString = f"""
WITH renewed AS (
    UPDATE turns SET lease_expires_at = now() + %(lease)s, shown = shown OR id = ANY(%(shown)s)
    WHERE id = ANY(%(turn_ids)s) AND tenant_id = %(tenant_id)s AND status IN ('waiting', 'running') AND {OWN}
    RETURNING id, stop_requested
)
SELECT id, stop_requested FROM renewed WHERE stop_requested IS NOT NULL
UNION ALL
SELECT id, 'taken_over' FROM turns
WHERE id = ANY(%(turn_ids)s) AND tenant_id = %(tenant_id)s
  AND (status IN ('waiting', 'running') AND NOT {OWN} OR finished_at < now() - interval '2 seconds')
"""  # noqa: S608 — our own text only

_RELEASE = """
UPDATE turns SET lease_expires_at = now() - interval '1 hour'
WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = 'waiting'
RETURNING id
"""

_EXPIRED = """
SELECT now(), e.tenant_id, e.turn_id, e.status
FROM (SELECT) AS once LEFT JOIN abandoned_turns(%(process)s) e ON true
"""

# The message enters the conversation when its turn begins, so that it follows the preceding answers.
_BEGIN: LiteralString = f"""
WITH begun AS (
    UPDATE turns SET status = 'running', started_at = clock_timestamp(), lease_expires_at = now() + %(lease)s,
        process = %(process)s
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = 'waiting' AND {OWN}
      AND NOT EXISTS (
          SELECT FROM turns other WHERE other.conversation_id = turns.conversation_id AND other.status = 'running')
      AND NOT EXISTS (
          SELECT FROM turns other WHERE other.conversation_id = turns.conversation_id AND other.status = 'waiting'
          AND (other.accepted_at, other.id) < (turns.accepted_at, turns.id))
    RETURNING id, user_message_id
), message AS (
    UPDATE messages SET completed = true, created_at = {next_moment("messages.conversation_id")}
    FROM begun WHERE messages.id = begun.user_message_id
)
SELECT CASE WHEN EXISTS (SELECT FROM begun) THEN 'running' WHEN {OWN} THEN status ELSE 'taken_over' END
FROM turns WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s
"""  # noqa: S608 — our own text only

# A running turn is run again once, if it has changed and shown nothing. If Redis knows nothing of it, its process
# must have been gone within two seconds, because its events may otherwise be lost.
_ADOPT: LiteralString = f"""
UPDATE turns t SET lease_expires_at = now() + %(lease)s, process = %(process)s,
    run_again = t.run_again OR t.status = 'running'
FROM conversations c, users u, experts e, messages m
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND {ABANDONED}
  AND (t.status = 'waiting' OR t.status = 'running' AND %(again)s AND NOT t.run_again AND NOT t.shown
      AND (%(shown)s OR t.lease_expires_at < t.started_at + %(lease)s + interval '2 seconds')
      AND NOT EXISTS (SELECT FROM memory_operations o WHERE o.user_id = c.user_id AND o.tenant_id = t.tenant_id
          AND o.trigger->>'turn_id' = t.id::text))
  AND c.id = t.conversation_id AND u.id = c.user_id AND e.id = c.expert_id AND m.id = t.user_message_id
RETURNING t.status = 'waiting' AS waiting, t.conversation_id, t.user_message_id, t.request,
          c.user_id, c.space_id, c.session_key, u.external_id,
          u.timezone, u.locale, m.content, m.parts, {of_expert("e", "u")},
          {RUNNING} AS running_experiments
"""  # noqa: S608 — our own text only


# A waiting or paused turn is ended at once; a running one is ended by its process.
_REQUEST_STOP = """
WITH asked AS (
    UPDATE turns SET
        stop_requested = coalesce(stop_requested, %(reason)s),
        status = CASE status WHEN 'running' THEN status ELSE 'cancelled' END,
        error = CASE status WHEN 'running' THEN error ELSE
            '{"code": "cancelled", "message": "The turn was cancelled.", "retryable": false}' END,
        finished_at = CASE WHEN status <> 'running' THEN clock_timestamp() END,
        request = CASE status WHEN 'paused' THEN request - 'paused' ELSE request END,
        lease_expires_at = CASE status WHEN 'running' THEN lease_expires_at END
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status IN ('waiting', 'running', 'paused')
    RETURNING id
)
SELECT pg_notify('anamnesis_turns', 'stop:' || id || ':' || %(reason)s) FROM asked
"""

_RUNNING = "SELECT id FROM turns WHERE conversation_id = %(conversation_id)s AND status = 'running'"

_UNFINISHED = """
SELECT id FROM turns
WHERE id = ANY(%(turn_ids)s) AND tenant_id = %(tenant_id)s AND status IN ('waiting', 'running')
"""

_STOP_WITHIN_S = 2.0
_LOOK_S = 0.05


@dataclass(frozen=True)
class ExpiredTurn:
    """An unfinished turn whose process is gone."""

    tenant_id: UUID
    turn_id: UUID
    status: Literal["waiting", "running", "paused"]


class TurnLeases:
    """Leases, queue positions and stop requests of unfinished turns."""

    def __init__(self, database: Database, *, default_locale: str | None = None) -> None:
        """Take the locale of users who have none."""
        self._database = database
        self._clock = ClockWatch(settles_s=LEASE.total_seconds())
        self._default_locale = default_locale
        self._mine = {"lease": LEASE, "process": database.process}

    async def renew(self, tenant_id: UUID, turns: Mapping[UUID, bool]) -> dict[UUID, StopReason]:
        """Renew the leases of this process's turns, and note which of them have shown something.

        Returns:
            The turns that must stop, run elsewhere, or have ended.
        """
        shown = [turn_id for turn_id, has in turns.items() if has]
        values = {"turn_ids": list(turns), "shown": shown, "tenant_id": tenant_id, **self._mine}
        return dict(await self._database.fetch(tenant_id, _RENEW, values, tuple_row))

    async def release(self, tenant_id: UUID, turn_id: UUID) -> None:
        """Release a waiting turn, for another process to adopt."""
        await self._database.fetch(tenant_id, _RELEASE, _ids(tenant_id, turn_id), tuple_row)

    async def look_at_clock(self) -> None:
        """Note the database's time, so that `expired` notices when the clock is set."""
        asked = time.monotonic()
        rows = await self._database.fetch_without_tenant("SELECT now()", {}, tuple_row)
        self._clock.is_steady(rows[0][0], asked)

    async def expired(self) -> list[ExpiredTurn]:
        """Return unfinished turns of all tenants whose process is gone, oldest first, at most 100; none for a
        while after the database's clock was set, so that live processes can renew their leases first."""
        asked = time.monotonic()
        rows = await self._database.fetch_without_tenant(_EXPIRED, self._mine, tuple_row)
        if not self._clock.is_steady(rows[0][0], asked):
            return []
        return [ExpiredTurn(*row[1:]) for row in rows if row[1] is not None]

    async def begin(self, tenant_id: UUID, turn_id: UUID) -> str | None:
        """Begin a waiting turn if it is next; return its status now, or None if it no longer exists. The status
        `taken_over` means that another process has it."""
        values = {**_ids(tenant_id, turn_id), **self._mine}
        try:
            rows = await self._database.fetch(tenant_id, _BEGIN, values, tuple_row)
        except psycopg.errors.UniqueViolation:  # another turn was opened at the same moment
            return "waiting"
        return str(rows[0][0]) if rows else None

    async def adopt(
        self, tenant_id: UUID, turn_id: UUID, *, again: bool = False, shown: bool = False
    ) -> OpenTurn | None:
        """Take over a turn whose process is gone: one that waits, or with `again` one that runs.

        Args:
            tenant_id: Tenant of the turn.
            turn_id: The turn.
            again: Whether it may be a running turn, of which no text was shown.
            shown: Whether it is known what the turn has shown.

        Returns:
            The turn; None if another process was faster, or if it cannot be run again because it has changed
            memory, or was run again before.
        """
        values = {
            **_ids(tenant_id, turn_id),
            **self._mine,
            "asking": self._database.process,
            "again": again,
            "shown": shown,
        }
        rows = await self._database.fetch(tenant_id, _ADOPT, values, dict_row)
        if not rows:
            return None
        row = rows[0]
        asked = adopted_input(row)
        turn = turn_of_row(row, asked, self._default_locale, **_ids(tenant_id, turn_id), waiting=row["waiting"])
        if running := running_experiments(row["running_experiments"]):
            turn = with_variants(turn, assign(tenant_id, turn.user_id, turn.expert, running))
        if self._database.vault is not None:
            self._database.vault.know(turn_id, tenant_id, asked["user_id"])
        return turn

    async def request_stop(self, tenant_id: UUID, turn_id: UUID, reason: StopReason) -> None:
        """Ask the process that runs the turn to stop it; a waiting turn is cancelled at once."""
        values = {**_ids(tenant_id, turn_id), "reason": reason}
        await self._database.fetch(tenant_id, _REQUEST_STOP, values, tuple_row)

    async def running(self, tenant_id: UUID, conversation_id: UUID) -> UUID | None:
        rows = await self._database.fetch(tenant_id, _RUNNING, {"conversation_id": conversation_id}, tuple_row)
        return rows[0][0] if rows else None

    async def unfinished(self, tenant_id: UUID, turn_ids: Sequence[UUID]) -> list[UUID]:
        """Return those of these turns that have not ended."""
        values = {"tenant_id": tenant_id, "turn_ids": list(turn_ids)}
        return [row[0] for row in await self._database.fetch(tenant_id, _UNFINISHED, values, tuple_row)]

    async def stop_all(
        self, tenant_id: UUID, turn_ids: Sequence[UUID], reason: StopReason = "cancelled"
    ) -> list[UUID]:
        """Stop turns wherever they run and give them two seconds to end; return those that have not."""
        for turn_id in turn_ids:
            await self.request_stop(tenant_id, turn_id, reason)
        left = list(turn_ids)
        try:
            async with asyncio.timeout(_STOP_WITHIN_S):
                while left := await self.unfinished(tenant_id, left):  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            pass
        return left


def _ids(tenant_id: UUID, turn_id: UUID) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "turn_id": turn_id}
