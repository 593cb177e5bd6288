"""Users: where and when they are, and what they are called."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.errors import NotFound
from services.platform.postgres import Database

_GET: LiteralString = """
SELECT external_id AS user_id, timezone, locale, display_name, created_at FROM users
WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s
"""

_CHANGE: LiteralString = """
UPDATE users SET
    timezone = CASE WHEN %(sets_timezone)s THEN %(timezone)s ELSE timezone END,
    locale = CASE WHEN %(sets_locale)s THEN %(locale)s ELSE locale END,
    display_name = CASE WHEN %(sets_display_name)s THEN %(display_name)s ELSE display_name END
WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s
RETURNING external_id AS user_id, timezone, locale, display_name, created_at
"""

_CHANGEABLE = ("timezone", "locale", "display_name")


@dataclass(frozen=True)
class User:
    """A user of a tenant."""

    user_id: str
    """The caller's own name for the user."""
    timezone: str
    """In which their days are."""
    locale: str | None
    display_name: str | None
    created_at: datetime


class Users:
    """Reads and changes users of a tenant; they come into being with their first message."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, tenant_id: UUID, user: str) -> User:
        """The user, by the caller's own name.

        Raises:
            NotFound: the tenant has no such user.
        """
        return await self._one(tenant_id, _GET, {"user": user})

    async def change(self, tenant_id: UUID, user: str, changes: Mapping[str, str | None]) -> User:
        """Set what is named of `timezone`, `locale` and `display_name`; the rest stays as it is.

        Raises:
            NotFound: the tenant has no such user.
        """
        values: dict[str, Any] = {"user": user}
        for name in _CHANGEABLE:
            values |= {name: changes.get(name), f"sets_{name}": name in changes}
        return await self._one(tenant_id, _CHANGE, values)

    async def _one(self, tenant_id: UUID, statement: LiteralString, values: dict[str, Any]) -> User:
        found = await self._database.fetch(
            tenant_id, statement, {**values, "tenant_id": tenant_id}, class_row(User)
        )
        if not found:
            raise NotFound(f"There is no user {values['user']!r}.")
        return found[0]
