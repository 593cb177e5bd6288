"""Statements over the rows of a batch, and the owners of its lines with what they have forgotten.

All of it in the transaction of the caller.

Statements are not prepared: a plan from the beginning of an import, when the tables are small, would be the wrong
one at its end. The bounds in them are bare values where they are compared: under row-level security no other
comparison is looked up in an index.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from psycopg.rows import TupleRow
from uuid_utils.compat import uuid7

from services.conversations.values import message_digest
from services.encryption.marks import WordsDigest, all_words
from services.errors import DatabaseContended
from services.memory.items import values_of
from services.memory.removal.purge import word_digest
from services.platform.connections import Connection
from services.transfer.lines import CoreMemoryLine, EpisodeLine, MessageLine, SessionLine


class BatchStatements:
    """Runs statements for one tenant; each takes arrays, so that many rows are one round trip."""

    def __init__(self, connection: Connection, tenant_id: UUID) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    async def _rows(self, statement: LiteralString, values: Mapping[str, Any]) -> list[TupleRow]:
        """Rows that a statement returns; `tenant_id` is added to its values."""
        cursor = await self._connection.execute(statement, {**values, "tenant_id": self._tenant_id}, prepare=False)
        return await cursor.fetchall()

    async def _run(self, statement: LiteralString, values: Mapping[str, Any]) -> None:
        """The same for a statement without a result."""
        await self._connection.execute(statement, {**values, "tenant_id": self._tenant_id}, prepare=False)


DEFAULT_EXPERT = "default"

Name = TypeVar("Name")
Known = TypeVar("Known")

# In the order of names, so that two imports cannot deadlock.
_MAKE_USERS: LiteralString = """
INSERT INTO users (id, tenant_id, external_id, timezone, locale, display_name, memory, created_at)
SELECT g.id, %(tenant_id)s, g.name, g.timezone, g.locale, g.display_name, g.memory, coalesce(g.created_at, now())
FROM unnest(%(ids)s::uuid[], %(names)s::text[], %(timezones)s::text[], %(locales)s::text[],
            %(display_names)s::text[], %(memories)s::boolean[], %(created_ats)s::timestamptz[])
    AS g (id, name, timezone, locale, display_name, memory, created_at)
ORDER BY g.name
ON CONFLICT (tenant_id, external_id) DO NOTHING
"""

# One import at a time works on a user; turns go on, and an erasure waits. In order, so that none waits for
# another that waits for it.
_LOCK_USERS: LiteralString = """
SELECT id, external_id, timezone FROM users
WHERE tenant_id = %(tenant_id)s AND external_id = ANY(%(names)s) ORDER BY id FOR NO KEY UPDATE
"""

_EXPERTS: LiteralString = """
SELECT name, id FROM experts WHERE tenant_id = %(tenant_id)s AND name = ANY(%(names)s)
"""

_MAKE_SPACES: LiteralString = """
INSERT INTO spaces (id, tenant_id, user_id, name)
SELECT g.id, %(tenant_id)s, g.user_id, g.name
FROM unnest(%(ids)s::uuid[], %(user_ids)s::uuid[], %(names)s::text[]) AS g (id, user_id, name)
ORDER BY g.user_id, g.name
ON CONFLICT (user_id, name, tenant_id) DO NOTHING
"""

_SPACES: LiteralString = """
SELECT s.user_id, s.name, s.id FROM unnest(%(user_ids)s::uuid[], %(names)s::text[]) AS g (user_id, name)
JOIN spaces s ON s.tenant_id = %(tenant_id)s AND s.user_id = g.user_id AND s.name = g.name
FOR KEY SHARE OF s
"""

_MAKE_CONVERSATIONS: LiteralString = """
INSERT INTO conversations (id, tenant_id, user_id, expert_id, space_id, session_key, title, renamed, pinned_at,
    created_at)
SELECT g.id, %(tenant_id)s, g.user_id, g.expert_id, g.space_id, g.session_key, g.title, g.renamed,
       CASE WHEN g.pinned THEN now() END, g.created_at
FROM unnest(%(ids)s::uuid[], %(user_ids)s::uuid[], %(expert_ids)s::uuid[], %(space_ids)s::uuid[], %(keys)s::text[],
            %(titles)s::text[], %(renamed)s::boolean[], %(pinned)s::boolean[], %(created_ats)s::timestamptz[])
    AS g (id, user_id, expert_id, space_id, session_key, title, renamed, pinned, created_at)
ORDER BY g.user_id, g.session_key
ON CONFLICT (tenant_id, user_id, session_key) DO NOTHING
"""

_CONVERSATIONS: LiteralString = """
SELECT c.id, c.user_id, c.session_key, c.space_id
FROM unnest(%(user_ids)s::uuid[], %(keys)s::text[]) AS g (user_id, session_key)
JOIN conversations c ON c.tenant_id = %(tenant_id)s AND c.user_id = g.user_id AND c.session_key = g.session_key
FOR KEY SHARE OF c
"""


@dataclass(frozen=True)
class NewUser:
    """A user as a line describes them."""

    name: str
    timezone: str | None = None
    locale: str | None = None
    display_name: str | None = None
    memory: bool = True
    created_at: datetime | None = None


@dataclass(frozen=True)
class KnownUser:
    """An existing user."""

    id: UUID
    timezone: str
    made: bool
    """Whether by this batch of lines."""


Session = tuple[UUID, str]
"""A user's id and the caller's name for the conversation."""
Space = tuple[UUID, str]
"""A user's id and the name of one of their spaces."""


@dataclass(frozen=True)
class NewConversation:
    """A conversation as a line describes it."""

    session: Session
    expert_id: UUID
    space_id: UUID | None
    title: str
    created_at: datetime
    renamed: bool = False
    pinned: bool = False


@dataclass(frozen=True)
class KnownConversation:
    """An existing conversation."""

    id: UUID
    space_id: UUID | None
    made: bool
    """Whether by this batch of lines."""


class Owners(BatchStatements):
    """Finds or creates the owners of lines, for one tenant.

    What was found stays until the transaction ends. What others remove in the moment before raises
    `DatabaseContended`: begun again, the transaction creates it.
    """

    async def users(self, wanted: Iterable[NewUser], default_timezone: str) -> dict[str, KnownUser]:
        """The users by name; until the transaction ends no other import touches them, and they are not erased."""
        news = {uuid7(): user for user in wanted}
        values = {
            "ids": list(news),
            "names": [user.name for user in news.values()],
            "timezones": [user.timezone or default_timezone for user in news.values()],
            "locales": [user.locale for user in news.values()],
            "display_names": [user.display_name for user in news.values()],
            "memories": [user.memory for user in news.values()],
            "created_ats": [user.created_at for user in news.values()],
        }
        await self._run(_MAKE_USERS, values)
        rows = await self._rows(_LOCK_USERS, values)
        known = {row[1]: KnownUser(row[0], row[2], made=row[0] in news) for row in rows}
        return _complete(known, {user.name for user in news.values()})

    async def experts(self, names: Collection[str]) -> dict[str, UUID]:
        """Ids of the existing experts."""
        return dict(await self._rows(_EXPERTS, {"names": list(names)}))

    async def spaces(self, wanted: Collection[Space]) -> dict[Space, UUID]:
        """Ids of the spaces; missing ones are created."""
        values = {
            "ids": [uuid7() for _ in wanted],
            "user_ids": [user_id for user_id, _ in wanted],
            "names": [name for _, name in wanted],
        }
        await self._run(_MAKE_SPACES, values)
        known = {(row[0], row[1]): row[2] for row in await self._rows(_SPACES, values)}
        return _complete(known, wanted)

    async def conversations(self, wanted: Mapping[Session, NewConversation]) -> dict[Session, KnownConversation]:
        """The conversations; missing ones are created."""
        news = {uuid7(): conversation for conversation in wanted.values()}
        values = {
            "ids": list(news),
            "user_ids": [new.session[0] for new in news.values()],
            "expert_ids": [new.expert_id for new in news.values()],
            "space_ids": [new.space_id for new in news.values()],
            "keys": [new.session[1] for new in news.values()],
            "titles": all_words(new.title for new in news.values()),
            "renamed": [new.renamed for new in news.values()],
            "pinned": [new.pinned for new in news.values()],
            "created_ats": [new.created_at for new in news.values()],
        }
        await self._run(_MAKE_CONVERSATIONS, values)
        rows = await self._rows(_CONVERSATIONS, values)
        known = {(row[1], row[2]): KnownConversation(row[0], row[3], made=row[0] in news) for row in rows}
        return _complete(known, wanted)


def _complete(known: dict[Name, Known], wanted: Iterable[Name]) -> dict[Name, Known]:
    if not known.keys() >= set(wanted):
        raise DatabaseContended
    return known


_FORGOTTEN: LiteralString = """
SELECT g.place, f.deleted
FROM unnest(%(user_ids)s::uuid[], %(digests)s::bytea[]) WITH ORDINALITY AS g (user_id, digest, place)
JOIN forgotten_words f ON f.user_id = g.user_id AND f.digest = g.digest AND f.tenant_id = %(tenant_id)s
"""

Forgettable = MessageLine | EpisodeLine | CoreMemoryLine | SessionLine


def digest_of_line(line: MessageLine) -> bytes:
    """Return the digest by which a message is known."""
    return message_digest(line.role, line.content, [part.image_url.url for part in line.parts])


@dataclass(frozen=True)
class Forgotten:
    """Digests that users have forgotten, each with whether its words were deleted."""

    digests: dict[tuple[UUID, bytes], bool]

    def deleted(self, user_id: UUID, digest: bytes) -> bool | None:
        """Whether words were deleted, or only taken out of memory; None where they were not forgotten."""
        return self.digests.get((user_id, digest))

    def without_forgotten(self, user_id: UUID, content: dict[str, Any]) -> dict[str, Any]:
        """Return a section of core memory without the values that were forgotten."""

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


class ForgottenWords(BatchStatements):
    """Reads what users of one tenant have forgotten."""

    async def among(self, lines: Sequence[tuple[UUID, Forgettable]]) -> Forgotten:
        """Return what of these lines, each with its user, was forgotten."""
        named = list(dict.fromkeys((user_id, each) for user_id, line in lines for each in _digests(line)))
        if not named:
            return Forgotten({})
        values = {
            "user_ids": [user_id for user_id, _ in named],
            "digests": [WordsDigest(digest) for _, digest in named],
        }
        rows = await self._rows(_FORGOTTEN, values)
        return Forgotten({named[place - 1]: deleted for place, deleted in rows})


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
