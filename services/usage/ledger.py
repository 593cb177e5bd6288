"""The ledger: tokens and calls by day, user, expert, purpose and model, in PostgreSQL.

Counts are written every two seconds, with one statement for each tenant; turns do not wait for it. Counts that
cannot be written are written later; a process that is killed loses those of its last two seconds.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from services.errors import BrokenReference, DatabaseUnavailable
from services.platform.postgres import Database


@dataclass(frozen=True)
class Spender:
    """The cause of model calls: who, and for what purpose."""

    tenant_id: UUID
    purpose: str
    """`turn`, `conversation_name`, `model_check`, or a background task's name."""
    user_id: UUID | None = None
    """User who pays; None = the user of the turn, conversation or visit, or nobody in particular."""
    expert_id: UUID | None = None
    turn_id: UUID | None = None
    conversation_id: UUID | None = None
    visit_id: UUID | None = None


@dataclass
class Spent:
    """Tokens and calls of one spender with one model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add(self, other: "Spent") -> None:
        """Add another sum to this one."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens


Counts = dict[tuple[Spender, str], Spent]
"""Sums by spender and model."""


class UsageMeter:
    """Usage since the meter was last taken."""

    def __init__(self) -> None:
        self.counts: Counts = {}

    def add(self, spender: Spender, model: str, spent: Spent) -> None:
        """Add to a sum."""
        self.counts.setdefault((spender, model), Spent()).add(spent)

    def take(self) -> Counts:
        """Return all sums and begin from zero."""
        taken, self.counts = self.counts, {}
        return taken

    @contextmanager
    def spending(self, spender: Spender) -> Iterator[None]:
        """Attribute model calls within the block, and in tasks that begin in it, to this spender."""
        token = _SPENDING.set((self, spender))
        try:
            yield
        finally:
            _SPENDING.reset(token)


_SPENDING: ContextVar[tuple[UsageMeter, Spender] | None] = ContextVar("spending", default=None)


def note_spent(model: str, spent: Spent) -> None:
    """Add a model call to the current `spending`; outside of one, nothing is counted."""
    if (current := _SPENDING.get()) is not None:
        meter, spender = current
        meter.add(spender, model, spent)


_EVERY_S = 2.0
_OF_TENANT = "usage_tenant_id_fkey"
"""Name of the constraint that is violated when a tenant was removed."""

log = structlog.get_logger(__name__)

Dimension = Literal["day", "user", "expert", "purpose", "model"]

# A user or expert who was removed meanwhile becomes NULL. Each is looked up by id: for a join the planner would
# read whole tables, because it expects a hundred rows of counts.
WRITE: LiteralString = """
INSERT INTO usage AS kept (tenant_id, day, user_id, expert_id, purpose, model, calls, input_tokens, output_tokens,
    cached_tokens)
SELECT %(tenant_id)s, n.day, u.id, coalesce(n.expert_id, c.expert_id, v.expert_id), n.purpose, n.model,
       sum(n.calls), sum(n.input_tokens), sum(n.output_tokens), sum(n.cached_tokens)
FROM jsonb_to_recordset(%(counts)s) AS n(day date, user_id uuid, expert_id uuid, turn_id uuid,
    conversation_id uuid, visit_id uuid, purpose text, model text, calls bigint, input_tokens bigint,
    output_tokens bigint, cached_tokens bigint)
LEFT JOIN LATERAL (SELECT conversation_id FROM turns WHERE id = n.turn_id LIMIT 1) AS t ON true
LEFT JOIN LATERAL (
    SELECT user_id, expert_id FROM conversations WHERE id = coalesce(n.conversation_id, t.conversation_id) LIMIT 1
) AS c ON true
LEFT JOIN LATERAL (SELECT user_id, expert_id FROM visits WHERE id = n.visit_id LIMIT 1) AS v ON true
LEFT JOIN LATERAL (SELECT id FROM users WHERE id = coalesce(n.user_id, c.user_id, v.user_id) LIMIT 1) AS u ON true
GROUP BY 2, 3, 4, 5, 6
ORDER BY 2, 3, 4, 5, 6
ON CONFLICT (tenant_id, day, user_id, expert_id, purpose, model) DO UPDATE
SET calls = kept.calls + excluded.calls, input_tokens = kept.input_tokens + excluded.input_tokens,
    output_tokens = kept.output_tokens + excluded.output_tokens,
    cached_tokens = kept.cached_tokens + excluded.cached_tokens
"""

# Only the wanted dimensions are read of each row; the others are NULL, so that they do not split the sums.
_READ: LiteralString = """
SELECT CASE WHEN 'day' = ANY(%(by)s) THEN s.day END AS day,
       CASE WHEN 'user' = ANY(%(by)s) THEN u.external_id END AS user,
       CASE WHEN 'expert' = ANY(%(by)s) THEN e.name END AS expert,
       CASE WHEN 'purpose' = ANY(%(by)s) THEN s.purpose END AS purpose,
       CASE WHEN 'model' = ANY(%(by)s) THEN s.model END AS model,
       sum(s.calls)::bigint AS calls, sum(s.input_tokens)::bigint AS input_tokens,
       sum(s.output_tokens)::bigint AS output_tokens, sum(s.cached_tokens)::bigint AS cached_tokens
FROM usage s
LEFT JOIN users u ON u.id = s.user_id
LEFT JOIN experts e ON e.id = s.expert_id
WHERE s.tenant_id = %(tenant_id)s AND s.day BETWEEN %(first)s AND %(last)s
  AND (%(user)s::text IS NULL OR u.external_id = %(user)s)
GROUP BY 1, 2, 3, 4, 5
ORDER BY sum(s.input_tokens + s.output_tokens) DESC, 1, 2, 3, 4, 5
LIMIT %(limit)s
"""

_NO_MEMORY = ("turn", "conversation_name", "model_check", "index_passages")
"""Purposes that are not memory's own work; all others are."""
# The index by user and time finds each user's entries.
_MEMORY: LiteralString = """
SELECT coalesce(sum(s.calls), 0)::bigint AS calls, coalesce(sum(s.input_tokens), 0)::bigint AS input_tokens,
       coalesce(sum(s.output_tokens), 0)::bigint AS output_tokens,
       (SELECT coalesce(sum((o.results ->> 'operations')::integer), 0)::bigint
        FROM users u JOIN memory_operations o ON o.user_id = u.id AND o.tenant_id = u.tenant_id
        WHERE u.tenant_id = %(tenant_id)s AND (%(user)s::text IS NULL OR u.external_id = %(user)s)
          AND o.type = 'memory_filing' AND o.at >= timezone('UTC', %(first)s::timestamp)
          AND o.at < timezone('UTC', %(last)s::timestamp + interval '1 day')) AS statements
FROM usage s LEFT JOIN users u ON u.id = s.user_id
WHERE s.tenant_id = %(tenant_id)s AND s.day BETWEEN %(first)s AND %(last)s AND s.purpose <> ALL(%(besides)s)
  AND (%(user)s::text IS NULL OR u.external_id = %(user)s)
"""

_SPENT: LiteralString = """
SELECT coalesce(sum(s.input_tokens + s.output_tokens), 0)::bigint,
       coalesce(sum(s.input_tokens + s.output_tokens) FILTER (WHERE u.external_id = %(user)s), 0)::bigint
FROM usage s LEFT JOIN users u ON u.id = s.user_id
WHERE s.tenant_id = %(tenant_id)s AND s.day = %(day)s
"""


@dataclass(frozen=True)
class UsageSum:
    """Usage by the dimensions that were asked for; the others are unset."""

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Input tokens that the provider read from its cache."""
    day: date | None = None
    user: str | None = None
    expert: str | None = None
    purpose: str | None = None
    """`turn`, `conversation_name`, `model_check`, or the name of a background task."""
    model: str | None = None


@dataclass(frozen=True)
class MemoryCost:
    """Cost of memory's own work: filing, summaries, reflection and upkeep, not the turns themselves."""

    calls: int
    input_tokens: int
    output_tokens: int
    statements: int
    """Number of changes of memory that filing made."""

    @property
    def tokens_per_statement(self) -> float | None:
        """Return tokens, in and out, per statement; None = there are no statements."""
        return round((self.input_tokens + self.output_tokens) / self.statements, 1) if self.statements else None


def today() -> date:
    """Return the current day in UTC, which the ledger uses."""
    return datetime.now(UTC).date()


class UsageLedger:
    """Writes what was counted, and reads it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.meter = UsageMeter()
        self._writing: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start writing from time to time."""
        self._writing = asyncio.create_task(self._write_on(), name="usage ledger")

    async def close(self) -> None:
        """Write what is left and stop."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        await self.write()

    async def write(self) -> None:
        """Write all counts; those that cannot be written now are counted again."""
        by_tenant: dict[UUID, Counts] = {}
        for (spender, model), spent in self.meter.take().items():
            by_tenant.setdefault(spender.tenant_id, {})[spender, model] = spent
        for tenant_id, counts in by_tenant.items():
            rows = [_row(spender, model) | vars(spent) for (spender, model), spent in counts.items()]
            try:
                values = {"tenant_id": tenant_id, "counts": Jsonb(rows)}
                await self._database.fetch(tenant_id, WRITE, values, tuple_row)
            except BrokenReference as error:
                if error.constraint == _OF_TENANT:
                    log.info("usage of a removed tenant is dropped", tenant_id=str(tenant_id))
                else:  # a user or an expert was just removed: the next statement does not find them
                    self._count_again(counts)
            except Exception as error:  # no count may be lost, whatever the error
                passing = isinstance(error, DatabaseUnavailable)
                log.warning("usage is written later", reason=type(error).__name__, exc_info=not passing)
                self._count_again(counts)

    def _count_again(self, counts: Counts) -> None:
        for (spender, model), spent in counts.items():
            self.meter.add(spender, model, spent)

    async def sums(
        self,
        tenant_id: UUID,
        first: date,
        last: date,
        by: Sequence[Dimension],
        *,
        user: str | None = None,
        limit: int,
    ) -> list[UsageSum]:
        """Return the usage from one day to another, both included, largest first.

        Args:
            first: First day in UTC.
            by: Dimensions to split by; empty = one sum.
            user: External id of the only user who counts; None = all.
        """
        values = {
            "tenant_id": tenant_id,
            "first": first,
            "last": last,
            "user": user,
            "limit": limit,
            "by": list(by),
        }
        return await self._database.fetch(tenant_id, _READ, values, class_row(UsageSum))

    async def memory(self, tenant_id: UUID, first: date, last: date, *, user: str | None = None) -> MemoryCost:
        """Return the cost of memory from one day in UTC to another, both included; `user` as in `sums`."""
        values = {"tenant_id": tenant_id, "first": first, "last": last, "user": user, "besides": list(_NO_MEMORY)}
        return (await self._database.fetch(tenant_id, _MEMORY, values, class_row(MemoryCost)))[0]

    async def spent_on(self, day: date, tenant_id: UUID, user: str) -> tuple[int, int]:
        """Return the tokens of a day, in and out, of the tenant and of the user."""
        values = {"tenant_id": tenant_id, "user": user, "day": day}
        ((of_tenant, of_user),) = await self._database.fetch(tenant_id, _SPENT, values, tuple_row)
        return of_tenant, of_user

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.write()


def _row(spender: Spender, model: str) -> dict[str, Any]:
    ids = ("user_id", "expert_id", "turn_id", "conversation_id", "visit_id")
    found: dict[str, Any] = {
        name: str(value) if (value := getattr(spender, name)) is not None else None for name in ids
    }
    return found | {"day": today().isoformat(), "purpose": spender.purpose, "model": model}
