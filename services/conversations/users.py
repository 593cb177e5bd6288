"""Users, and the spaces that divide their conversations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.platform.postgres import Database

_GET: LiteralString = """
SELECT external_id AS user_id, timezone, locale, display_name, memory, mood, quiet_hours, created_at FROM users
WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s
"""

_CHANGE: LiteralString = """
UPDATE users SET
    timezone = CASE WHEN %(sets_timezone)s THEN %(timezone)s ELSE timezone END,
    locale = CASE WHEN %(sets_locale)s THEN %(locale)s ELSE locale END,
    display_name = CASE WHEN %(sets_display_name)s THEN %(display_name)s ELSE display_name END,
    memory = CASE WHEN %(sets_memory)s THEN %(memory)s ELSE memory END,
    mood = CASE WHEN %(sets_mood)s THEN %(mood)s ELSE mood END,
    quiet_hours = CASE WHEN %(sets_quiet_hours)s THEN %(quiet_hours)s ELSE quiet_hours END
WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s
RETURNING external_id AS user_id, timezone, locale, display_name, memory, mood, quiet_hours, created_at
"""

# In byte order, which does not depend on the database's locale.
_PAGE: LiteralString = """
SELECT u.external_id AS user_id, u.timezone, u.locale, u.display_name, u.memory, u.mood, u.quiet_hours,
       u.created_at,
       (SELECT count(*) FROM conversations c WHERE c.user_id = u.id) AS conversations,
       visits.messages, visits.last_active_at,
       (SELECT count(*) FROM remembered_episodes e WHERE e.user_id = u.id) AS episodes
FROM users u CROSS JOIN LATERAL (
    SELECT coalesce(sum(v.message_count), 0) AS messages, max(v.last_active_at) AS last_active_at
    FROM visits v WHERE v.user_id = u.id
) AS visits
WHERE u.tenant_id = %(tenant_id)s AND (%(after)s::text IS NULL OR u.external_id COLLATE "C" > %(after)s)
  AND (%(prefix)s::text IS NULL OR starts_with(lower(u.external_id), lower(%(prefix)s))
       OR starts_with(lower(u.display_name), lower(%(prefix)s)))
ORDER BY u.external_id COLLATE "C" LIMIT %(limit)s
"""

_MAKE: LiteralString = """
INSERT INTO users (id, tenant_id, external_id, timezone, locale)
VALUES (%(id)s, %(tenant_id)s, %(user)s, %(timezone)s, %(locale)s)
ON CONFLICT (tenant_id, external_id) DO NOTHING
"""

_CHANGEABLE = ("timezone", "locale", "display_name", "memory", "mood", "quiet_hours")

_LIST: LiteralString = """
SELECT s.name, s.created_at,
       (SELECT count(*) FROM conversations c WHERE c.space_id = s.id) AS conversations,
       (SELECT count(*) FROM remembered_episodes e WHERE e.space_id = s.id) AS memories,
       (SELECT max(v.last_active_at) FROM visits v WHERE v.space_id = s.id) AS last_active_at
FROM spaces s WHERE s.tenant_id = %(tenant_id)s AND s.user_id = %(user_id)s ORDER BY s.name
"""

_RENAME: LiteralString = """
UPDATE spaces s SET name = %(new)s FROM users u
WHERE s.tenant_id = %(tenant_id)s AND u.tenant_id = %(tenant_id)s AND u.id = s.user_id
  AND u.external_id = %(user)s AND s.name = %(name)s
"""


@dataclass(frozen=True)
class User:
    """A user of a tenant."""

    user_id: str
    """The caller's own name for the user."""
    timezone: str
    """Time zone of their days."""
    locale: str | None
    display_name: str | None
    memory: bool
    """Whether turns read memory and add to it."""
    mood: bool
    """Whether it is noted and told how they feel."""
    quiet_hours: str | None
    """When nothing is said unasked: 22:00-07:00, always or never; null = as the setting says."""
    created_at: datetime


@dataclass(frozen=True)
class ListedUser(User):
    """A user, and the size of what is stored of the user."""

    conversations: int
    messages: int
    """Number of complete messages."""
    episodes: int
    """Number of episodes that hold."""
    last_active_at: datetime | None
    """Time of the last message of a visit; None = there is none."""


class Users:
    """Reads and changes users of a tenant, who are created with their first message or memory."""

    def __init__(
        self, database: Database, *, default_timezone: str = "UTC", default_locale: str | None = None
    ) -> None:
        """Take the defaults of new users."""
        self._database = database
        self._defaults = {"timezone": default_timezone, "locale": default_locale}

    async def make(self, tenant_id: UUID, user: str) -> None:
        """Create the user, unless the tenant has them already."""
        values = {**self._defaults, "id": uuid7(), "tenant_id": tenant_id, "user": user}
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_MAKE, values)

    async def get(self, tenant_id: UUID, user: str) -> User:
        """The user, by the caller's own name. Raises `NotFound` if the tenant has no such user."""
        return await self._one(tenant_id, _GET, {"user": user})

    async def page(
        self, tenant_id: UUID, *, prefix: str | None = None, after: str | None = None, limit: int
    ) -> Sequence[ListedUser]:
        """Return users by name, whose name or display name begins with `prefix`, after the name `after`."""
        values = {"tenant_id": tenant_id, "prefix": prefix, "after": after, "limit": limit}
        return await self._database.fetch(tenant_id, _PAGE, values, class_row(ListedUser))

    async def change(self, tenant_id: UUID, user: str, changes: Mapping[str, str | bool | None]) -> User:
        """Set the given ones of `timezone`, `locale`, `display_name`, `memory`, `mood` and `quiet_hours`.

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


@dataclass(frozen=True)
class ListedSpace:
    """A space, with the size of its content."""

    name: str
    created_at: datetime
    conversations: int
    memories: int
    """Number of episodes that hold."""
    last_active_at: datetime | None
    """When something was said in it last; null = never."""


class Spaces:
    """Lists and renames spaces, which are created with their first conversation or memory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, tenant_id: UUID, user: str) -> Sequence[ListedSpace]:
        """The spaces of a user, by the caller's name for them, in the order of their names. Raises `NotFound`
        if the tenant has no such user."""
        values = {"tenant_id": tenant_id, "user_id": await user_id_of(self._database, tenant_id, user)}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(ListedSpace))

    async def rename(self, tenant_id: UUID, user: str, name: str, new: str) -> None:
        """Give a user's space another name; all that belongs to it stays there.

        Raises:
            NotFound: the user has no space of this name.
            Conflict: the user has a space of the new name already; two are not made one.
        """
        values = {"tenant_id": tenant_id, "user": user, "name": name, "new": new}
        try:
            async with self._database.tenant(tenant_id) as connection:
                renamed = await connection.execute(_RENAME, values)
        except psycopg.errors.UniqueViolation:
            raise Conflict(f"There is a space {new!r} already; spaces are not merged.") from None
        if not renamed.rowcount:
            raise NotFound(f"The user {user!r} has no space {name!r}.")
