"""Tenants, which share nothing with each other, and their users by name."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, InvalidInput, NotFound
from services.platform.postgres import Database

DEFAULT_TENANT = UUID("00000000-0000-7000-8000-000000000001")
"""Tenant of all callers while authentication is off; the first migration creates it."""

_NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}", re.ASCII)
_REMEMBERED_S = 60.0
_REMEMBERED_AT_MOST = 10_000

_CREATE = """
INSERT INTO tenants (id, name) VALUES (%(id)s, %(name)s)
ON CONFLICT (name) DO NOTHING RETURNING id, name, created_at
"""

_CREATE_EXPERT = """
INSERT INTO experts (id, tenant_id, name, system_prompt) VALUES (%(id)s, %(tenant_id)s, 'default', '')
"""

_LIST = "SELECT id, name, created_at FROM tenants ORDER BY name"

_FIND = "SELECT id, name, created_at FROM tenants WHERE name = %(name)s OR id = %(id)s"

_USER: LiteralString = "SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s"


@dataclass(frozen=True)
class Tenant:
    id: UUID
    name: str
    created_at: datetime


class Tenants:
    """Makes and finds tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: dict[str, tuple[float, Tenant]] = {}

    async def create(self, name: str) -> Tenant:
        """Make a tenant with its expert `default`. Raises `InvalidInput` if the name is not valid, and
        `Conflict` if there is already a tenant of this name."""
        # A name that looks like an id could be taken for another tenant's.
        if not _NAME.fullmatch(name) or _as_uuid(name):
            raise InvalidInput("name", "must be 1 to 128 of letters, digits and ._:@- and not look like an id")
        tenant_id = uuid7()
        async with (
            self._database.tenant(tenant_id) as connection,
            connection.cursor(row_factory=class_row(Tenant)) as cursor,
        ):
            await cursor.execute(_CREATE, {"id": tenant_id, "name": name})
            if (tenant := await cursor.fetchone()) is None:
                raise Conflict(f"There is a tenant named {name} already.")
            expert = {"id": uuid7(), "tenant_id": tenant_id}
            await cursor.execute(_CREATE_EXPERT, expert)
        return tenant

    async def remove(self, tenant_id: UUID) -> None:
        """Remove a tenant and all its rows from the database, but not from the index."""
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute("DELETE FROM tenants WHERE id = %s", [tenant_id])
        self._remembered.clear()

    async def list(self) -> Sequence[Tenant]:
        """Return all tenants, by name."""
        return await self._database.fetch_without_tenant(_LIST, {}, class_row(Tenant))

    async def by_name_or_id(self, text: str) -> Tenant | None:
        """Return the tenant that a token or an operator names; the answer is cached for a minute."""
        at, tenant = self._remembered.get(text, (0.0, None))
        if tenant is not None and time.monotonic() - at < _REMEMBERED_S:
            return tenant
        values = {"name": text, "id": _as_uuid(text)}
        found = await self._database.fetch_without_tenant(_FIND, values, class_row(Tenant))
        if not found:
            return None
        if len(self._remembered) >= _REMEMBERED_AT_MOST:
            self._remembered.clear()
        self._remembered[text] = time.monotonic(), found[0]
        return found[0]


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def user_id_of(database: Database, tenant_id: UUID, user: str) -> UUID:
    """Return the id of a tenant's user by the caller's own name for them. Raises `NotFound` if the tenant has
    no such user."""
    found = await database.fetch(tenant_id, _USER, {"tenant_id": tenant_id, "user": user}, tuple_row)
    if not found:
        raise NotFound(f"There is no user {user!r}.")
    user_id: UUID = found[0][0]
    return user_id
