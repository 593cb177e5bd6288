"""Rules of retention: for how many days a tenant keeps each kind, in PostgreSQL."""

from collections.abc import Mapping
from typing import Literal, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.platform.database_errors import again_if_contended
from services.platform.postgres import Database

Kind = Literal["messages", "turns", "jobs", "operations"]
"""`messages`: conversations in which nothing was said since, with their messages and turns, and the episodes that
are those messages. `turns`: prompts, their reports and the requests of ended turns, of which the rest stays.
`jobs`: finished background jobs. `operations`: the log of what memory did, without which nothing can be undone."""

KINDS: tuple[Kind, ...] = ("messages", "turns", "jobs", "operations")
LONGEST_DAYS = 36_500

Rules = Mapping[Kind, int]
"""Days by kind; a kind that is absent is kept as long as the service keeps it anyway."""

_RULES: LiteralString = "SELECT kind, days FROM retention_rules WHERE tenant_id = %(tenant_id)s"

_SET_RULE: LiteralString = """
INSERT INTO retention_rules (tenant_id, kind, days) VALUES (%(tenant_id)s, %(kind)s, %(days)s)
ON CONFLICT (tenant_id, kind) DO UPDATE SET days = excluded.days, set_at = clock_timestamp()
"""

_REMOVE_RULE: LiteralString = "DELETE FROM retention_rules WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s"


class RetentionRules:
    """Reads and sets the rules of tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, tenant_id: UUID) -> dict[Kind, int]:
        """Return a tenant's rules."""
        rows = await self._database.fetch(tenant_id, _RULES, {"tenant_id": tenant_id}, tuple_row)
        days: dict[str, int] = dict(rows)
        return {kind: days[kind] for kind in KINDS if kind in days}

    @again_if_contended
    async def change(self, tenant_id: UUID, rules: Mapping[Kind, int | None]) -> dict[Kind, int]:
        """Set the rules that are named, remove those that are None, and return all that hold then."""
        async with self._database.tenant(tenant_id) as connection:
            for kind, days in rules.items():
                values = {"tenant_id": tenant_id, "kind": kind, "days": days}
                await connection.execute(_REMOVE_RULE if days is None else _SET_RULE, values)
        return await self.of(tenant_id)
