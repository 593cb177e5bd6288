"""Export: all data of a user as JSON Lines that the import accepts.

It leaves out ids of this service, which cannot be the same elsewhere, and what is derived from the rest: episodes
of turns, summaries, topics. An export that is imported elsewhere gives an equal export there.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.errors import NotFound
from services.memory.core.values import pinned_among
from services.platform.postgres import Database
from services.promises.promise import stands
from services.store import sql as store_sql
from services.store.model import parted
from services.transfer.messages import digest_of

_USER: LiteralString = """
SELECT id, external_id AS name, timezone, locale, display_name, memory, mood, quiet_hours, created_at FROM users
WHERE tenant_id = %(tenant_id)s AND external_id = %(name)s
"""

_SPACE: LiteralString = """
SELECT id FROM spaces WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND name = %(space)s
"""

_SESSIONS: LiteralString = """
SELECT c.id, c.session_key AS session_id, e.name AS expert, s.name AS space, c.title, c.renamed,
       c.pinned_at IS NOT NULL AS pinned, c.metadata, c.created_at
FROM conversations c JOIN experts e ON e.id = c.expert_id LEFT JOIN spaces s ON s.id = c.space_id
WHERE c.user_id = %(user_id)s AND c.tenant_id = %(tenant_id)s
  AND (%(space)s::text IS NULL OR s.name = %(space)s) ORDER BY c.created_at, c.session_key
"""

# Messages whose words were deleted are left out. A page ends early if messages hold images, whose stored size is
# known without reading them.
_MESSAGES: LiteralString = """
SELECT m.id, m.role, m.content, m.created_at, m.speaker, m.external_id, m.completed, m.parts,
       m.retracted_at IS NOT NULL AS retracted, m.memory_text,
       (SELECT count(*) FROM conversation_branches b JOIN conversation_branches o
            ON o.conversation_id = b.conversation_id AND (o.created_at, o.id) <= (b.created_at, b.id)
        WHERE b.id = m.branch_id) AS branch,
       CASE f.rating WHEN 1 THEN 'up' WHEN -1 THEN 'down' END AS rating, f.comment, f.tags,
       f.updated_at AS rated_at,
       m.id = ANY(ARRAY(
           SELECT unnest(e.source_message_ids) FROM episodes e
           WHERE e.conversation_id = %(conversation_id)s AND e.tenant_id = %(tenant_id)s
             AND e.episode_type = 'turn' AND e.pinned_at IS NOT NULL)) AS pinned
FROM (
    SELECT id, size, sum(size) OVER (ORDER BY created_at, id) AS total FROM (
        SELECT id, created_at, pg_column_size(content) + pg_column_size(parts) AS size FROM messages
        WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
          AND NOT (content = '' AND parts = '[]' AND retracted_at IS NOT NULL)
          AND (created_at, id) > (%(at)s::timestamptz, %(id)s::uuid)
        ORDER BY created_at, id LIMIT %(limit)s
    ) AS page
) AS sized JOIN messages m ON m.id = sized.id LEFT JOIN feedback f ON f.message_id = m.id
WHERE sized.total - sized.size < %(bytes)s
ORDER BY m.created_at, m.id
"""

_CORE_MEMORY: LiteralString = """
SELECT b.id, e.name AS expert, s.name AS space, b.section, b.content, b.updated_at,
       ARRAY(SELECT digest FROM core_memory_pins p
             WHERE p.block_id = b.id AND p.tenant_id = %(tenant_id)s) AS pins
FROM core_memory_blocks b JOIN experts e ON e.id = b.expert_id LEFT JOIN spaces s ON s.id = b.space_id
WHERE b.user_id = %(user_id)s AND b.tenant_id = %(tenant_id)s
  AND (%(space)s::text IS NULL OR s.name = %(space)s) ORDER BY e.name, s.name NULLS FIRST, b.section
"""

# The successor of a superseded memory says what was superseded.
_EPISODES: LiteralString = """
SELECT p.id, x.name AS expert, z.name AS space, c.session_key AS session_id, p.episode_type, p.content,
       p.importance, p.origin, p.created_at, p.archived_by IS NOT NULL AS archived,
       p.pinned_at IS NOT NULL AS pinned,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
               'session_id', k.session_key, 'external_id', m.external_id, 'created_at', m.created_at,
               'role', m.role, 'content', m.content
           ) ORDER BY s.place)
           FROM unnest(p.source_message_ids) WITH ORDINALITY AS s (id, place)
           JOIN messages m ON m.id = s.id JOIN conversations k ON k.id = m.conversation_id
       ), '[]') AS sources
FROM (
    SELECT * FROM episodes
    WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s AND episode_type <> 'turn'
      AND retracted_at IS NULL AND superseded_by IS NULL AND superseded_in IS NULL
      AND (%(space)s::text IS NULL OR space_id = (
          SELECT s.id FROM spaces s WHERE s.user_id = %(user_id)s AND s.name = %(space)s))
      AND (created_at, id) > (%(at)s::timestamptz, %(id)s::uuid)
    ORDER BY created_at, id LIMIT %(limit)s
) AS p
JOIN experts x ON x.id = p.expert_id LEFT JOIN conversations c ON c.id = p.conversation_id
LEFT JOIN spaces z ON z.id = p.space_id
ORDER BY p.created_at, p.id
"""


_PROMISES: LiteralString = """
SELECT e.name AS expert, s.name AS space, c.session_key AS session_id, p.text, p.said, p.quote, p.rule, p.timezone,
       p.asked_by, p.event, p.state, p.due_at, p.created_at, p.settled_at, p.source_message_id,
       m.retracted_at IS NOT NULL OR m.branch_id IS NOT NULL AS source_goes, m.memory_text AS source_text,
       CASE WHEN m.id IS NOT NULL THEN jsonb_build_object(
           'session_id', k.session_key, 'external_id', m.external_id, 'created_at', m.created_at,
           'role', m.role, 'content', m.content
       ) END AS source
FROM promises p JOIN experts e ON e.id = p.expert_id LEFT JOIN spaces s ON s.id = p.space_id
LEFT JOIN conversations c ON c.id = p.conversation_id
LEFT JOIN messages m ON m.id = p.source_message_id LEFT JOIN conversations k ON k.id = m.conversation_id
WHERE p.user_id = %(user_id)s AND p.tenant_id = %(tenant_id)s
  AND (%(space)s::text IS NULL OR s.name = %(space)s) ORDER BY p.created_at, p.id
"""


# Of a turn its messages suffice: its episode is made from them again.
_EXCLUSIONS: LiteralString = """
WITH excluded AS (
    SELECT x.created_at, c.session_key, c.space_id, coalesce(m.id, x.message_id) AS message_id,
           CASE WHEN e.episode_type <> 'turn' THEN e.id END AS episode_id
    FROM recall_exclusions x JOIN conversations c ON c.id = x.conversation_id
    LEFT JOIN episodes e ON e.id = x.episode_id
    LEFT JOIN messages m ON e.episode_type = 'turn' AND m.id = ANY(e.source_message_ids)
    WHERE c.user_id = %(user_id)s AND x.tenant_id = %(tenant_id)s
)
SELECT x.session_key AS session_id,
       CASE WHEN e.id IS NOT NULL THEN jsonb_build_object(
           'created_at', e.created_at, 'content', e.content
       ) END AS memory,
       CASE WHEN m.id IS NOT NULL THEN jsonb_build_object(
           'session_id', k.session_key, 'external_id', m.external_id, 'created_at', m.created_at,
           'role', m.role, 'content', m.content
       ) END AS message
FROM (SELECT DISTINCT ON (session_key, message_id, episode_id) * FROM excluded) AS x
LEFT JOIN remembered_episodes e ON e.id = x.episode_id
LEFT JOIN messages m ON m.id = x.message_id LEFT JOIN conversations k ON k.id = m.conversation_id
WHERE (e.id IS NOT NULL OR m.id IS NOT NULL)
  AND (%(space)s::text IS NULL OR (x.space_id = coalesce(e.space_id, k.space_id) AND x.space_id = (
      SELECT s.id FROM spaces s WHERE s.user_id = %(user_id)s AND s.name = %(space)s)))
ORDER BY x.session_key, coalesce(e.created_at, m.created_at), coalesce(e.id, m.id)
"""


_SAID_IF_SO = frozenset(
    ["space", "renamed", "pinned", "metadata", "archived", "retracted", "branch", "memory_text"]
)
"""Fields that a line has only if they are true."""


Row = dict[str, Any]
"""A row with the names of a line's fields, and with other values that are needed to make the line."""

_PAGE = 200
_PAGE_BYTES = 4 * 1024 * 1024
_BEFORE_ALL = UUID(int=0)


class Exporter:
    """Exports users of a tenant. It reads in pages, so that a slow export holds no connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def user(self, tenant_id: UUID, name: str, space: str | None = None) -> Row:
        """Return the user to export, whole or in one space. Raises `NotFound` if the tenant has no such user,
        or the user no such space."""
        found = await self._all(_USER, tenant_id, name=name)
        if not found:
            raise NotFound(f"There is no user {name!r}.")
        if space is not None and not await self._all(_SPACE, tenant_id, user_id=found[0]["id"], space=space):
            raise NotFound(f"The user {name!r} has no space {space!r}.")
        return found[0]

    async def lines(self, tenant_id: UUID, user: Row, space: str | None = None) -> AsyncIterator[list[str]]:
        """Yield the lines, some at a time, each with its line end; with `space`, only those of that space.

        First comes the user, then each conversation with its messages, oldest first, then core memory, episodes,
        items of the store, promises, and last what conversations exclude. What is stored meanwhile may be missing.
        Raises `DatabaseUnavailable` if the database does not answer; the export is incomplete.
        """
        of_user = {"user_id": user["id"], "space": space}
        yield [_user_line(user)]
        for session in await self._all(_SESSIONS, tenant_id, **of_user):
            yield [_line("session", user, session)]
            of_session = {name: session[name] for name in ("session_id", "expert", "space")}
            said = {"conversation_id": session["id"], "bytes": _PAGE_BYTES}
            async for messages in self._pages(_MESSAGES, tenant_id, said):
                yield [_line("message", user, of_session, _message(each)) for each in messages]
        yield [_section_line(user, each) for each in await self._all(_CORE_MEMORY, tenant_id, **of_user)]
        async for episodes in self._pages(_EPISODES, tenant_id, of_user):
            yield [_line("episode", user, each, sources=list(map(_source, each["sources"]))) for each in episodes]
        async for items in self._pages(store_sql.EXPORT, tenant_id, of_user):
            yield [_item_line(user, each) for each in items]
        promises = await self._all(_PROMISES, tenant_id, **of_user)
        yield [_promise_line(user, each) for each in promises if stands(each)]
        yield [_exclusion_line(user, each) for each in await self._all(_EXCLUSIONS, tenant_id, **of_user)]

    async def _all(self, statement: LiteralString, tenant_id: UUID, **values: Any) -> list[Row]:
        return await self._database.fetch(tenant_id, statement, {**values, "tenant_id": tenant_id}, dict_row)

    async def _pages(self, statement: LiteralString, tenant_id: UUID, values: Row) -> AsyncIterator[list[Row]]:
        """Yield pages; each continues after the last row of the page before."""
        place = {"at": "-infinity", "id": _BEFORE_ALL}
        while page := await self._all(statement, tenant_id, **values, **place, limit=_PAGE):
            place = {"at": page[-1]["created_at"], "id": page[-1]["id"]}
            yield page


def _user_line(user: Row) -> str:
    settings = {name: user[name] for name in ("timezone", "locale", "display_name", "quiet_hours")}
    switched_off = {name: False for name in ("memory", "mood") if not user[name]}
    return _line("user", user, settings, **switched_off, created_at=user["created_at"])


def _message(row: Row) -> Row:
    rating, comment, tags, at = (row.pop(name) for name in ("rating", "comment", "tags", "rated_at"))
    if rating is not None and at is not None:
        row["feedback"] = {"rating": rating, "comment": comment, "tags": tags, "updated_at": _moment(at)}
    if row["branch"]:  # a repeated answer has the client's id of the first one
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


def _promise_line(user: Row, row: Row) -> str:
    source = row.pop("source")
    about = {name: value for name, value in row.items() if not name.startswith("source_")}
    return _line("promise", user, about, source=_source(source) if source else None)


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
