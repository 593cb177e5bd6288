"""Audit of lineage: whatever derived has no parents, or names one that is missing."""

from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database

# What was retracted waits to be undone, or is gone for good.
_ORPHANS: LiteralString = """
WITH edge AS (
    SELECT kind, id, parent_kind, parent_id FROM lineage
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
), item AS (
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
SELECT %(user)s AS user, kind, id, problem, parent_id FROM parentless
UNION ALL SELECT %(user)s, kind, id, problem, parent_id FROM missing
"""

_USERS: LiteralString = "SELECT id, external_id FROM users"


@dataclass(frozen=True)
class Orphan:
    """Something derived whose lineage has a hole."""

    user: str
    kind: str
    id: UUID
    problem: str
    parent_id: UUID | None


async def orphans(database: Database) -> list[Orphan]:
    """Return every orphan of the default tenant."""
    found: list[Orphan] = []
    for user_id, user in await database.fetch(DEFAULT_TENANT, _USERS, {}, tuple_row):
        values = {"tenant_id": DEFAULT_TENANT, "user_id": user_id, "user": user}
        found += await database.fetch(DEFAULT_TENANT, _ORPHANS, values, class_row(Orphan))
    return found
