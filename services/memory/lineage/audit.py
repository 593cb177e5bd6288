"""Audit of lineage: reports everything derived that has no parents, or names a missing parent."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import dict_row, tuple_row

from services.errors import NotFound
from services.jobs.queue import JobQueue
from services.platform.metrics import LINEAGE_ORPHANS
from services.platform.postgres import Database

AUDIT = "audit_lineage"
"""Task that audits every tenant, once a night."""
_NIGHTLY = "40 4 * * *"
_USERS_AT_ONCE = 200
_MOST_LISTED = 1000
_OF_ORPHAN = ("kind", "id", "problem", "parent_kind", "parent_id")

_USERS: LiteralString = """
SELECT id, external_id FROM users WHERE tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR external_id = %(user)s) AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id LIMIT %(limit)s
"""

# The user's edges are computed once. What was retracted waits to be undone, or is gone for good.
ORPHANS: LiteralString = """
WITH edge AS MATERIALIZED (
    SELECT kind, id, parent_kind, parent_id FROM lineage
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
), item AS MATERIALIZED (
    SELECT kind, id, is_root FROM derived_items
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND state <> 'retracted'
), parentless AS (
    SELECT i.kind, i.id, 'no parents' AS problem, NULL::text AS parent_kind, NULL::uuid AS parent_id FROM item i
    WHERE NOT i.is_root AND NOT EXISTS (SELECT FROM edge e WHERE e.kind = i.kind AND e.id = i.id)
), missing AS (
    SELECT e.kind, e.id, 'parent is missing' AS problem, e.parent_kind, e.parent_id
    FROM edge e JOIN item i ON i.kind = e.kind AND i.id = e.id
    WHERE e.parent_kind = 'message' AND NOT EXISTS (
            SELECT FROM messages m JOIN conversations c ON c.id = m.conversation_id
            WHERE m.id = e.parent_id AND m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s)
       OR e.parent_kind = 'visit' AND NOT EXISTS (
            SELECT FROM visits v WHERE v.id = e.parent_id AND v.user_id = %(user_id)s)
       OR e.parent_kind = 'episode' AND NOT EXISTS (
            SELECT FROM episodes p WHERE p.id = e.parent_id AND p.user_id = %(user_id)s)
)
SELECT kind, id, problem, parent_kind, parent_id, (SELECT count(*) FROM item) AS items,
       (SELECT count(*) FROM edge) AS edges
FROM (SELECT * FROM parentless UNION ALL SELECT * FROM missing) AS found
RIGHT JOIN (SELECT 1) AS always ON true
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Orphan:
    """Something derived whose lineage has a hole."""

    user: str
    kind: str
    id: UUID
    problem: str
    """`no parents` or `parent is missing`."""
    parent_kind: str | None
    parent_id: UUID | None


@dataclass
class AuditReport:
    """Result of an audit."""

    users: int = 0
    items: int = 0
    edges: int = 0
    orphans: int = 0
    listed: list[Orphan] = field(default_factory=list)
    """The first 1000 orphans."""


class LineageAudit:
    """Audits lineage. Every process with a worker has one: it registers the nightly job."""

    def __init__(self, database: Database, jobs: JobQueue) -> None:
        self._database = database
        jobs.periodic(AUDIT, _NIGHTLY)(self._job)

    async def audit(self, tenant_id: UUID, user: str | None = None) -> AuditReport:
        """Audit one user, or all users of a tenant."""
        report = AuditReport()
        values: dict[str, Any] = {"tenant_id": tenant_id, "user": user, "after": None, "limit": _USERS_AT_ONCE}
        while users := await self._database.fetch(tenant_id, _USERS, values, tuple_row):
            for user_id, name in users:
                of_user = {"tenant_id": tenant_id, "user_id": user_id}
                rows = await self._database.fetch(tenant_id, ORPHANS, of_user, dict_row)
                report.users += 1
                report.items += rows[0].pop("items")
                report.edges += rows[0].pop("edges")
                found = [Orphan(name, **{each: row[each] for each in _OF_ORPHAN}) for row in rows if row["id"]]
                report.orphans += len(found)
                report.listed += found[: _MOST_LISTED - len(report.listed)]
            values["after"] = users[-1][0]
        if user is not None and not report.users:
            raise NotFound(f"There is no user {user!r}.")
        return report

    async def _job(self) -> None:
        total, kinds = 0, Counter[str]()
        for tenant_id in await self._database.tenants():
            report = await self.audit(tenant_id)
            total += report.orphans
            kinds.update(orphan.kind for orphan in report.listed)
        LINEAGE_ORPHANS.set(total)
        if total:
            log.warning(
                "derived data without parents: run anamnesis lineage audit", orphans=total, kinds=dict(kinds)
            )
