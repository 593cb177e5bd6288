"""Statements over the rows of a batch, the owners of its lines, and what these owners have forgotten.

Everything happens in the caller's transaction. Statements are not prepared: a plan made at the beginning of an
import, when tables are small, would be wrong at its end. Bounds are plain values where they are compared, because
under row-level security no other comparison uses an index.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from psycopg.rows import TupleRow
from uuid_utils.compat import uuid7

from services.conversations.values import message_digest
from services.errors import DatabaseContended
from services.memory.core.items import values_of
from services.memory.removal.purge import word_digest
from services.platform.connections import Connection
from services.transfer.lines import CoreMemoryLine, EpisodeLine, MessageLine, SessionLine

Row = dict[str, Any]
"""Values by the names of columns."""


def given(**columns: LiteralString) -> LiteralString:
    """Return the SQL source `g` of the rows given to a statement; its column `place` counts them from 1.

    Args:
        **columns: Types by the names of the columns.
    """
    arrays = ", ".join(f"%({name}s)s::{kind}[]" for name, kind in columns.items())
    return f"unnest({arrays}) WITH ORDINALITY AS g ({', '.join(columns)}, place)"


def insert(table: LiteralString, after: LiteralString = "", **columns: LiteralString) -> LiteralString:
    """Return a statement that inserts the given rows; `after` ends it, for example with `ON CONFLICT`."""
    names = ", ".join(columns)
    rows = f"SELECT %(tenant_id)s::uuid, {names} FROM {given(**columns)}"  # noqa: S608 — our own text only
    return f"INSERT INTO {table} (tenant_id, {names}) {rows} {after}"


class BatchStatements:
    """Runs statements for one tenant; each takes many rows at once, with one array for each column."""

    def __init__(self, connection: Connection, tenant_id: UUID) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    async def _run(self, statement: LiteralString, rows: Sequence[Row], **values: Any) -> list[TupleRow]:
        """Run a statement for rows, if there are any, and return its result.

        Each column is a parameter with an `s` after its name: by `user_ids` or `conversation_ids` the vault knows
        whose words the other parameters hold.
        """
        if not rows:
            return []
        columns = {f"{name}s": [row[name] for row in rows] for name in rows[0]}
        parameters = {**columns, **values, "tenant_id": self._tenant_id}
        cursor = await self._connection.execute(statement, parameters, prepare=False)
        return await cursor.fetchall() if cursor.description else []


DEFAULT_EXPERT = "default"

Name = TypeVar("Name")
Known = TypeVar("Known")

# In the order of names, so that two imports cannot deadlock.
_MAKE_USERS = insert(
    "users", "ORDER BY external_id ON CONFLICT (tenant_id, external_id) DO NOTHING",
    id="uuid", external_id="text", timezone="text", locale="text", display_name="text", memory="boolean",
    mood="boolean", quiet_hours="text", created_at="timestamptz",
)  # fmt: skip

# Only one import at a time works on a user; turns continue, and an erasure waits. In order, so that no two imports
# wait for each other.
_LOCK_USERS: LiteralString = """
SELECT id, external_id, timezone FROM users
WHERE tenant_id = %(tenant_id)s AND external_id = ANY(%(external_ids)s) ORDER BY id FOR NO KEY UPDATE
"""

_EXPERTS: LiteralString = """
SELECT name, id FROM experts WHERE tenant_id = %(tenant_id)s AND name = ANY(%(names)s)
"""

_MAKE_SPACES = insert(
    "spaces", "ORDER BY user_id, name ON CONFLICT (user_id, name, tenant_id) DO NOTHING",
    id="uuid", user_id="uuid", name="text",
)  # fmt: skip

_SPACES: LiteralString = f"""
SELECT s.user_id, s.name, s.id FROM {given(user_id="uuid", name="text")}
JOIN spaces s ON s.tenant_id = %(tenant_id)s AND s.user_id = g.user_id AND s.name = g.name
FOR KEY SHARE OF s
"""  # noqa: S608 — our own text only

_MAKE_CONVERSATIONS = insert(
    "conversations", "ORDER BY user_id, session_key ON CONFLICT (tenant_id, user_id, session_key) DO NOTHING",
    id="uuid", user_id="uuid", expert_id="uuid", space_id="uuid", session_key="text", title="text",
    renamed="boolean", pinned_at="timestamptz", metadata="jsonb", created_at="timestamptz",
)  # fmt: skip

_CONVERSATIONS: LiteralString = f"""
SELECT c.id, c.user_id, c.session_key, c.space_id FROM {given(user_id="uuid", session_key="text")}
JOIN conversations c ON c.tenant_id = %(tenant_id)s AND c.user_id = g.user_id AND c.session_key = g.session_key
FOR KEY SHARE OF c
"""  # noqa: S608 — our own text only


@dataclass(frozen=True)
class KnownUser:
    """An existing user."""

    id: UUID
    timezone: str
    made: bool
    """Whether this batch has made it."""


Session = tuple[UUID, str]
"""A user's id and the caller's name for the conversation."""
Space = tuple[UUID, str]
"""A user's id and the name of one of their spaces."""


@dataclass(frozen=True)
class KnownConversation:
    """An existing conversation."""

    id: UUID
    space_id: UUID | None
    made: bool
    """Whether this batch has made it."""


class Owners(BatchStatements):
    """Finds or creates the owners of lines, for one tenant.

    The owners found cannot be removed until the transaction ends. If one is removed just before,
    `DatabaseContended` is raised: the repeated transaction creates it.
    """

    async def users(self, wanted: Sequence[Row]) -> dict[str, KnownUser]:
        """Return the users by name; no other import touches them, and no erasure, until the transaction ends."""
        await self._run(_MAKE_USERS, wanted)
        new = {row["id"] for row in wanted}
        rows = await self._run(_LOCK_USERS, wanted)
        known = {row[1]: KnownUser(row[0], row[2], made=row[0] in new) for row in rows}
        return _complete(known, {row["external_id"] for row in wanted})

    async def experts(self, names: Collection[str]) -> dict[str, UUID]:
        """Return the ids of the existing experts."""
        return dict(await self._run(_EXPERTS, [{"name": name} for name in names]))

    async def spaces(self, wanted: Collection[Space]) -> dict[Space, UUID]:
        """Return the ids of the spaces; missing ones are created."""
        rows = [{"id": uuid7(), "user_id": user_id, "name": name} for user_id, name in wanted]
        await self._run(_MAKE_SPACES, rows)
        known = {(row[0], row[1]): row[2] for row in await self._run(_SPACES, rows)}
        return _complete(known, wanted)

    async def conversations(self, wanted: Mapping[Session, Row]) -> dict[Session, KnownConversation]:
        """Return the conversations; missing ones are created."""
        news = list(wanted.values())
        await self._run(_MAKE_CONVERSATIONS, news)
        new = {row["id"] for row in news}
        rows = await self._run(_CONVERSATIONS, news)
        known = {(row[1], row[2]): KnownConversation(row[0], row[3], made=row[0] in new) for row in rows}
        return _complete(known, wanted)


def _complete(known: dict[Name, Known], wanted: Iterable[Name]) -> dict[Name, Known]:
    if not known.keys() >= set(wanted):
        raise DatabaseContended
    return known


# Digests are compared after reading: while a user's key is renewed, several blocks stand for one digest.
_FORGOTTEN: LiteralString = """
SELECT user_id, digest, deleted FROM forgotten_words
WHERE user_id = ANY(%(forgetful)s) AND tenant_id = %(tenant_id)s ORDER BY deleted
"""

Forgettable = MessageLine | EpisodeLine | CoreMemoryLine | SessionLine


def digest_of_line(line: MessageLine) -> bytes:
    """Return the digest that recognises a message."""
    return message_digest(line.role, line.content, [part.image_url.url for part in line.parts])


class Forgotten(BatchStatements):
    """Finds which of some lines the users of one tenant have forgotten."""

    digests: Mapping[tuple[UUID, bytes], bool] = {}
    """By user and digest of the forgotten words: whether the words were deleted."""

    async def look_up(self, lines: Sequence[tuple[UUID, Forgettable]]) -> None:
        """Look up these lines, each with its user."""
        named = {(user_id, each) for user_id, line in lines for each in _digests(line)}
        users = list({user_id for user_id, _ in named})
        found = await self._connection.execute(
            _FORGOTTEN, {"forgetful": users, "tenant_id": self._tenant_id}, prepare=False
        )
        kept = {(row[0], bytes(row[1])): row[2] for row in await found.fetchall()}
        self.digests = {each: kept[each] for each in named if each in kept}

    def deleted(self, user_id: UUID, digest: bytes) -> bool | None:
        """Return whether words were deleted or only taken out of memory; None if they were not forgotten."""
        return self.digests.get((user_id, digest))

    def without_forgotten(self, user_id: UUID, content: dict[str, Any]) -> dict[str, Any]:
        """Return a section of core memory without forgotten values."""

        def kept(prefix: str, value: Any) -> Any:
            if isinstance(value, dict):
                inner = {name: kept(f"{prefix}.{name}" if prefix else name, each) for name, each in value.items()}
                return {name: each for name, each in inner.items() if each is not None}
            if isinstance(value, list):
                return [item for item in value if not gone(prefix, item)]
            return None if gone(prefix, value) else value

        def gone(name: str, item: Any) -> bool:
            return self.deleted(user_id, word_digest("value", name, str(item))) is not None

        return kept("", content) if self.digests else content


def _digests(line: Forgettable) -> Iterable[bytes]:
    match line:
        case MessageLine():
            yield digest_of_line(line)
        case EpisodeLine():
            yield word_digest("episode", line.content)
        case SessionLine():
            yield word_digest("title", line.title)
        case CoreMemoryLine():
            for name, text in values_of(line.content):
                yield word_digest("value", name, text)
