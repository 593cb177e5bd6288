"""Export: everything of a user as JSON Lines, each of which the import takes.

Ids of ours are not in it, as they cannot be the same elsewhere, and neither is what is rebuilt from what is in
it: episodes of turns, summaries, topics. An export that is imported elsewhere gives an equal export.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.errors import NotFound
from services.memory.core_values import pinned_among
from services.platform.postgres import Database
from services.store import sql as store_sql
from services.store.model import parted
from services.transfer import export_sql as sql
from services.transfer.messages import digest_of

_SAID_IF_SO = frozenset(["space", "renamed", "pinned", "archived", "retracted", "branch", "memory_text"])
"""Fields that only those lines have of which it is true."""


Row = dict[str, Any]
"""A row, by the names of a line's fields, with what more is needed to make a line of it."""

_PAGE = 200
_PAGE_BYTES = 4 * 1024 * 1024
_BEFORE_ALL = UUID(int=0)


class Exporter:
    """Exports users of a tenant, read in pages, so that a slow export holds no connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def user(self, tenant_id: UUID, name: str, space: str | None = None) -> Row:
        """Return the user whose export this is to be, all of it or that of one space.

        Raises:
            NotFound: the tenant has no such user, or the user no such space.
        """
        found = await self._all(sql.USER, tenant_id, name=name)
        if not found:
            raise NotFound(f"There is no user {name!r}.")
        if space is not None and not await self._all(sql.SPACE, tenant_id, user_id=found[0]["id"], space=space):
            raise NotFound(f"The user {name!r} has no space {space!r}.")
        return found[0]

    async def lines(self, tenant_id: UUID, user: Row, space: str | None = None) -> AsyncIterator[list[str]]:
        """Yield the lines, some at a time, each with its end; with `space`, only what belongs to that space.

        First the user, then each conversation with its messages, oldest first, then core memory, episodes and
        items of the store, and last what conversations exclude. What is stored meanwhile may be in it or not.

        Raises:
            DatabaseUnavailable: the database does not answer; the export is not whole.
        """
        of_user = {"user_id": user["id"], "space": space}
        yield [_user_line(user)]
        for session in await self._all(sql.SESSIONS, tenant_id, **of_user):
            yield [_line("session", user, session)]
            of_session = {name: session[name] for name in ("session_id", "expert", "space")}
            said = {"conversation_id": session["id"], "bytes": _PAGE_BYTES}
            async for messages in self._pages(sql.MESSAGES, tenant_id, said):
                yield [_line("message", user, of_session, _message(each)) for each in messages]
        yield [_section_line(user, each) for each in await self._all(sql.CORE_MEMORY, tenant_id, **of_user)]
        async for episodes in self._pages(sql.EPISODES, tenant_id, of_user):
            yield [_line("episode", user, each, sources=list(map(_source, each["sources"]))) for each in episodes]
        async for items in self._pages(store_sql.EXPORT, tenant_id, of_user):
            yield [_item_line(user, each) for each in items]
        yield [_exclusion_line(user, each) for each in await self._all(sql.EXCLUSIONS, tenant_id, **of_user)]

    async def _all(self, statement: LiteralString, tenant_id: UUID, **values: Any) -> list[Row]:
        return await self._database.fetch(tenant_id, statement, {**values, "tenant_id": tenant_id}, dict_row)

    async def _pages(self, statement: LiteralString, tenant_id: UUID, values: Row) -> AsyncIterator[list[Row]]:
        """Read on from the last row of each page."""
        place = {"at": "-infinity", "id": _BEFORE_ALL}
        while page := await self._all(statement, tenant_id, **values, **place, limit=_PAGE):
            place = {"at": page[-1]["created_at"], "id": page[-1]["id"]}
            yield page


def _user_line(user: Row) -> str:
    settings = {name: user[name] for name in ("timezone", "locale", "display_name")}
    switched_off = {} if user["memory"] else {"memory": False}
    return _line("user", user, settings, **switched_off, created_at=user["created_at"])


def _message(row: Row) -> Row:
    rating, comment, tags, at = (row.pop(name) for name in ("rating", "comment", "tags", "rated_at"))
    if rating is not None and at is not None:
        row["feedback"] = {"rating": rating, "comment": comment, "tags": tags, "updated_at": _moment(at)}
    if row["branch"]:  # an answer that was given once more has the client's id of the first one
        row["external_id"] = None
    if row["retracted"]:
        row["memory_text"] = None
    return row


def _section_line(user: Row, row: Row) -> str:
    pinned = pinned_among(row["id"], row["content"], row.pop("pins"))
    named = [{"field": field, "text": text} for field, text in pinned]
    return _line("core_memory", user, row, pinned=named or None)


def _item_line(user: Row, row: Row) -> str:
    return _line("store_item", user, row, namespace=parted(row["namespace"]), value=json.loads(row["value"]))


def _exclusion_line(user: Row, row: Row) -> str:
    of_session = {"session_id": row["session_id"]}
    if row["message"] is not None:
        return _line("exclusion", user, of_session, message=_source(row["message"]))
    memory = row["memory"] or {}
    moment = _moment(datetime.fromisoformat(memory["created_at"]))
    named = {"created_at": moment, "sha256": digest_of(memory["content"]).hex()}
    return _line("exclusion", user, of_session, memory=named)


def _source(source: dict[str, Any]) -> dict[str, Any]:
    if source["external_id"] is not None:
        return {"session_id": source["session_id"], "external_id": source["external_id"]}
    moment = _moment(datetime.fromisoformat(source["created_at"]))
    return {
        "session_id": source["session_id"],
        "created_at": moment,
        "role": source["role"],
        "sha256": digest_of(source["content"]).hex(),
    }


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _line(kind: str, user: Row, *rows: Row, **values: Any) -> str:
    named: Row = {}
    for each in (*rows, values):
        named |= each
    shown = {
        name: _moment(value) if isinstance(value, datetime) else value
        for name, value in named.items()
        if name != "id" and not (name in _SAID_IF_SO and value in (None, False, 0))
    }
    return (
        json.dumps({"kind": kind, "user_id": user["name"], **shown}, ensure_ascii=False, separators=(",", ":"))
        + "\n"
    )
