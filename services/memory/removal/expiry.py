"""Retention of a tenant: its rules, a preview of what they remove, and removal in batches.

Conversations are removed as users remove them, each in its own transaction. An interrupted run has removed whole
batches, and the next one continues. Only one run of a tenant takes place at a time.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import class_row, dict_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.errors import Conflict, InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.memory.removal.wholes import WholeErasure
from services.platform.connections import again_if_contended
from services.platform.postgres import UNHURRIED_S, Database

Kind = Literal["messages", "turns", "jobs", "operations"]
"""Kinds of data that expire. `messages`: silent conversations, with their messages and turns, and the episodes
of those messages. `turns`: prompts, reports and requests of ended turns; the rest of the turns stays. `jobs`:
finished background jobs. `operations`: the log of memory, without which nothing can be undone."""

KINDS: tuple[Kind, ...] = ("messages", "turns", "jobs", "operations")
LONGEST_DAYS = 36_500

Rules = Mapping[Kind, int]
"""Number of days for each kind; for a kind that is absent, the service's usual time applies."""

_RULES: LiteralString = "SELECT kind, days FROM retention_rules WHERE tenant_id = %(tenant_id)s"

_SET_RULE: LiteralString = """
INSERT INTO retention_rules (tenant_id, kind, days) VALUES (%(tenant_id)s, %(kind)s, %(days)s)
ON CONFLICT (tenant_id, kind) DO UPDATE SET days = excluded.days, set_at = clock_timestamp()
"""

_REMOVE_RULE: LiteralString = "DELETE FROM retention_rules WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s"


APPLY_RETENTION = "apply_retention"
_EVERY = "37 3 * * *"
_NIGHT_S = 480.0
"""Maximum seconds of the nightly run for all tenants of a database; the next night continues."""
_CONVERSATIONS_AT_ONCE, _ROWS_AT_ONCE = 100, 1_000

log = structlog.get_logger(__name__)

_KEEP_REPORT: LiteralString = """
INSERT INTO retention_runs (id, tenant_id, begun_at, report)
VALUES (%(id)s, %(tenant_id)s, %(begun_at)s, %(report)s)
"""

_REPORTS: LiteralString = """
SELECT id, begun_at, report FROM retention_runs WHERE tenant_id = %(tenant_id)s
ORDER BY begun_at DESC, id DESC LIMIT %(limit)s
"""

# The newest message decides: a conversation that goes on keeps its beginning. One with an open promise stays.
_SILENT: LiteralString = """
SELECT c.id AS conversation_id, c.user_id, c.expert_id FROM conversations c
WHERE c.tenant_id = %(tenant_id)s
  AND coalesce(
      (SELECT max(m.created_at) FROM messages m WHERE m.conversation_id = c.id), c.created_at
  ) < %(before)s
  AND NOT EXISTS (SELECT FROM turns t WHERE t.conversation_id = c.id AND t.finished_at IS NULL)
  AND NOT EXISTS (SELECT FROM promises p WHERE p.conversation_id = c.id AND p.state = 'open')
"""

_SILENT_PAGE: LiteralString = f"{_SILENT} ORDER BY c.id LIMIT %(limit)s"

_COUNT_SILENT: LiteralString = f"""
WITH silent AS MATERIALIZED ({_SILENT})
SELECT (SELECT count(*) FROM silent) AS conversations,
       (SELECT count(*) FROM messages m JOIN silent s USING (conversation_id)) AS messages,
       (SELECT count(*) FROM turns t JOIN silent s USING (conversation_id)) AS turns,
       (SELECT count(*) FROM episodes e JOIN silent s USING (conversation_id)
        WHERE e.content IS NULL) AS turn_episodes
"""  # noqa: S608 — our own text only

_COUNT_STAYING: LiteralString = """
SELECT count(*) FROM messages m
WHERE m.tenant_id = %(tenant_id)s AND m.created_at < %(before)s AND EXISTS (
    SELECT FROM messages l WHERE l.conversation_id = m.conversation_id AND l.created_at >= %(before)s)
"""

_OLD: dict[str, LiteralString] = {
    "turns": """
        SELECT id FROM turns WHERE tenant_id = %(tenant_id)s AND finished_at < %(before)s
          AND (prompt IS NOT NULL OR context_report IS NOT NULL OR request <> '{}')""",
    "jobs": """
        SELECT j.id FROM procrastinate_jobs j
        WHERE j.status NOT IN ('todo', 'doing')
          AND coalesce(j.args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
          AND (SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = j.id) < %(before)s""",
    "operations": """
        SELECT id FROM memory_operations o WHERE o.tenant_id = %(tenant_id)s AND o.at < %(before)s
          AND NOT coalesce(o.type = 'memory_proposal' AND o.results->>'state' = 'waiting', false)""",
}
_COUNT: LiteralString = "SELECT count(*) FROM ({old}) AS found"
_REMOVE: dict[str, LiteralString] = {
    "turns": "UPDATE turns SET prompt = NULL, context_report = NULL, request = '{}'",
    "jobs": "DELETE FROM procrastinate_jobs",
    "operations": "DELETE FROM memory_operations",
}


@dataclass(frozen=True)
class Expired:
    """Things of one kind that are older than its rule allows."""

    kind: Kind
    days: int
    before: datetime
    """Moment from which on everything stays."""
    counts: dict[str, int]
    """Number of things that go, or are gone, by kind."""
    staying: int = 0
    """Number of older messages that stay because their conversations continue."""


@dataclass(frozen=True)
class RetentionReport:
    """A preview, or what a run has removed."""

    begun_at: datetime
    kinds: list[Expired] = field(default_factory=list)
    complete: bool = True
    """Whether everything was removed; if not, the time was up, and another run continues."""


@dataclass(frozen=True)
class StoredReport:
    """The report of an earlier run."""

    id: UUID
    begun_at: datetime
    report: dict[str, Any]


class Retention:
    """Previews and applies the rules. Every process with a worker has one: it registers the nightly run."""

    def __init__(self, database: Database, erasure: WholeErasure, jobs: JobQueue) -> None:
        self._database = database
        self._erasure = erasure
        self._jobs = jobs
        jobs.periodic(APPLY_RETENTION, _EVERY)(self._night)

    async def rules(self, tenant_id: UUID) -> dict[Kind, int]:
        """Return a tenant's rules."""
        rows = await self._database.fetch(tenant_id, _RULES, {"tenant_id": tenant_id}, tuple_row)
        days: dict[str, int] = dict(rows)
        return {kind: days[kind] for kind in KINDS if kind in days}

    @again_if_contended
    async def change_rules(self, tenant_id: UUID, rules: Mapping[Kind, int | None]) -> dict[Kind, int]:
        """Set the rules that are given, remove those that are None, and return all that apply afterwards."""
        async with self._database.tenant(tenant_id) as connection:
            for kind, days in rules.items():
                values = {"tenant_id": tenant_id, "kind": kind, "days": days}
                await connection.execute(_REMOVE_RULE if days is None else _SET_RULE, values)
        return await self.rules(tenant_id)

    async def preview(self, tenant_id: UUID, rules: Rules | None = None) -> RetentionReport:
        """Count what a run would remove now; nothing is removed.

        Args:
            rules: to try out; None = those that are set.
        """
        now = datetime.now(UTC)
        found = []
        for kind, days in (await self.rules(tenant_id) if rules is None else rules).items():
            before = now - timedelta(days=days)
            counts, staying = await self._count(tenant_id, kind, before)
            found.append(Expired(kind, days, before, counts, staying))
        return RetentionReport(now, found)

    async def run(self, tenant_id: UUID, *, seconds: float) -> RetentionReport:
        """Remove what is older than the rules allow, for about `seconds` at most, and store the report.

        Raises:
            InvalidInput: the tenant has no rules.
            Conflict: another run of the tenant is under way.
            DatabaseUnavailable: the database does not answer; what was removed stays removed.
        """
        rules = await self.rules(tenant_id)
        if not rules:
            raise InvalidInput("rules", "none is set, so everything is kept")
        async with self._database.only_one(f"{APPLY_RETENTION} {tenant_id}") as alone:
            if not alone:
                raise Conflict("Another run of retention is under way for this tenant.")
            return await self._run(tenant_id, rules, time.monotonic() + seconds)

    async def reports(self, tenant_id: UUID, *, limit: int) -> Sequence[StoredReport]:
        """Return the reports of earlier runs, newest first."""
        values = {"tenant_id": tenant_id, "limit": limit}
        return await self._database.fetch(tenant_id, _REPORTS, values, class_row(StoredReport))

    async def _run(self, tenant_id: UUID, rules: Rules, until: float) -> RetentionReport:
        now = datetime.now(UTC)
        done: list[Expired] = []
        for kind, days in rules.items():
            before = now - timedelta(days=days)
            counts = await self._remove(tenant_id, kind, before, until)
            done.append(Expired(kind, days, before, counts))
        report = RetentionReport(now, done, complete=time.monotonic() < until)
        written = {
            "kinds": [{**asdict(each), "before": each.before.isoformat()} for each in done],
            "complete": report.complete,
        }
        values = {"id": uuid7(), "tenant_id": tenant_id, "begun_at": now, "report": Jsonb(written)}
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_KEEP_REPORT, values)
        removed = {f"{each.kind}_{name}": count for each in done for name, count in each.counts.items() if count}
        log.info("retention applied", tenant_id=str(tenant_id), complete=report.complete, **removed)
        return report

    async def _count(self, tenant_id: UUID, kind: Kind, before: datetime) -> tuple[dict[str, int], int]:
        values = {"tenant_id": tenant_id, "before": before}
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            if kind == "messages":
                async with connection.cursor(row_factory=dict_row) as cursor:
                    [counts] = await (await cursor.execute(_COUNT_SILENT, values)).fetchall()
                [[staying]] = await (await connection.execute(_COUNT_STAYING, values)).fetchall()
                return counts, staying
            [[count]] = await (await connection.execute(_COUNT.replace("{old}", _OLD[kind]), values)).fetchall()
        return {kind: count}, 0

    async def _remove(self, tenant_id: UUID, kind: Kind, before: datetime, until: float) -> dict[str, int]:
        if kind == "messages":
            return await self._remove_conversations(tenant_id, before, until)
        count, removed = 0, _ROWS_AT_ONCE
        values = {"tenant_id": tenant_id, "before": before, "limit": _ROWS_AT_ONCE}
        statement: LiteralString = _REMOVE[kind] + " WHERE id IN (" + _OLD[kind] + " LIMIT %(limit)s)"
        while removed == _ROWS_AT_ONCE and time.monotonic() < until:
            async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
                removed = (await connection.execute(statement, values)).rowcount
            count += removed
        return {kind: count}

    async def _remove_conversations(self, tenant_id: UUID, before: datetime, until: float) -> dict[str, int]:
        counts = dict.fromkeys(("conversations", "messages", "turns", "turn_episodes"), 0)
        values = {"tenant_id": tenant_id, "before": before, "limit": _CONVERSATIONS_AT_ONCE}
        while time.monotonic() < until:
            found = await self._database.fetch(tenant_id, _SILENT_PAGE, values, dict_row)
            for conversation in found:
                if time.monotonic() >= until:
                    break
                try:
                    erased = await self._erasure.expire(tenant_id, conversation, silent_since=before)
                except (Conflict, NotFound):  # it goes on, or somebody else has removed it
                    continue
                for name in counts:
                    counts[name] += erased.removed["postgresql"][name]
            if len(found) < _CONVERSATIONS_AT_ONCE:
                break
        return counts

    async def _night(self) -> None:
        """Apply the rules of all tenants, as long as the night's time lasts."""
        until = time.monotonic() + _NIGHT_S
        for tenant_id in await self._database.tenants():
            if (left := until - time.monotonic()) <= 0:
                log.warning("retention goes on in the next night")
                break
            try:
                if await self.rules(tenant_id):
                    await self.run(tenant_id, seconds=left)
            except Conflict:
                continue
