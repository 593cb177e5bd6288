"""Reads conversations and their messages."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.conversations.values import title_of
from services.encryption.marks import Words
from services.errors import NotFound
from services.platform.postgres import Database
from services.platform.shared_reads import page_after

SHOWN_TITLE: LiteralString = """
CASE WHEN c.renamed THEN c.title ELSE coalesce((
    SELECT CASE WHEN m.retracted_at IS NULL THEN coalesce(m.memory_text, '') ELSE '' END
    FROM (SELECT * FROM messages m WHERE m.conversation_id = c.id ORDER BY m.created_at, m.id LIMIT 1) AS m
    WHERE m.retraction_id IS NOT NULL
      AND (m.retracted_at IS NOT NULL OR m.memory_text IS NOT NULL OR m.off_record)
), c.title) END"""
"""SQL for the title of a conversation `c`. If something of its first message was forgotten, it is the rest of
that message, to be shortened."""

_CONVERSATIONS = f"""
SELECT c.id, c.session_key AS session_id, u.external_id AS user_id, e.name AS expert, s.name AS space,
       {SHOWN_TITLE} AS title, c.pinned_at IS NOT NULL AS pinned, c.created_at
FROM conversations c JOIN users u ON u.id = c.user_id JOIN experts e ON e.id = c.expert_id
LEFT JOIN spaces s ON s.id = c.space_id
WHERE c.tenant_id = %(tenant_id)s
  AND (%(user_id)s::text IS NULL OR u.external_id = %(user_id)s)
  AND (%(session_id)s::text IS NULL OR c.session_key = %(session_id)s)
  AND (%(space)s::text IS NULL OR s.name = %(space)s)
  AND (%(pinned)s::boolean IS NULL OR (c.pinned_at IS NOT NULL) = %(pinned)s)
  AND (%(contains)s::text IS NULL OR strpos(lower(c.title), lower(%(contains)s)) > 0 OR EXISTS (
      SELECT FROM messages m WHERE m.conversation_id = c.id AND m.tenant_id = c.tenant_id AND m.branch_id IS NULL
        AND strpos(lower(m.content), lower(%(contains)s)) > 0))
  AND (%(id)s::uuid IS NULL OR c.id = %(id)s)
  AND (%(after_at)s::timestamptz IS NULL OR (c.created_at, c.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY c.created_at DESC, c.id DESC LIMIT %(limit)s
"""  # noqa: S608 — our own text only

_SAID_IN = """
SELECT conversation_id, content FROM messages
WHERE conversation_id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s AND branch_id IS NULL
"""

_CHANGE: LiteralString = """
UPDATE conversations c SET
    title = coalesce(%(title)s, title),
    renamed = renamed OR %(title)s::text IS NOT NULL,
    pinned_at = CASE %(pinned)s::boolean WHEN true THEN coalesce(pinned_at, now()) WHEN false THEN NULL
        ELSE pinned_at END
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
RETURNING 1
"""

LONGEST_TITLE = 200
"""Maximum characters of a title."""
_SCANNED_AT_ONCE = 50
_OF_ALL = dict.fromkeys(("user_id", "session_id", "space", "pinned", "contains", "id"))
_PART_BYTES = 1024 * 1024


def _part(after: LiteralString, order: LiteralString) -> LiteralString:
    # Sizes are read without texts and images, which may be stored apart from the row.
    return f"""
SELECT id, turn_id, role, content, parts, completed, token_count, created_at, external_id, speaker,
       (metadata->>'promise_id')::uuid AS promise_id, found
FROM (
    SELECT m.*, count(*) OVER () AS found, row_number() OVER in_order AS place,
           sum(octet_length(content) + pg_column_size(parts)) OVER in_order AS bytes
    FROM (
        SELECT * FROM messages
        WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s AND branch_id IS NULL
          AND (%(after_at)s::timestamptz IS NULL OR (created_at, id) {after} (%(after_at)s, %(after_id)s::uuid))
        ORDER BY {order} LIMIT %(limit)s
    ) AS m
    WINDOW in_order AS (ORDER BY {order})
) AS page
WHERE place = 1 OR bytes <= %(part_bytes)s
ORDER BY {order}
"""  # noqa: S608 — of constants below


_PART_OF_MESSAGES = _part(">", "created_at, id")
_PART_OF_NEWEST = _part("<", "created_at DESC, id DESC")

_MESSAGE = """
SELECT id, turn_id, role, content, parts, completed, token_count, created_at, external_id, speaker,
       (metadata->>'promise_id')::uuid AS promise_id
FROM messages
WHERE id = %(message_id)s AND tenant_id = %(tenant_id)s
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
"""


@dataclass(frozen=True)
class Conversation:
    """One thread between a user and an expert."""

    id: UUID
    session_id: str
    user_id: str
    """The caller's own name for the user."""
    expert: str
    space: str | None
    """Name of the space that it belongs to, if any."""
    title: str
    """Title; empty if all of the first message was forgotten."""
    pinned: bool
    created_at: datetime


@dataclass(frozen=True)
class Message:
    """One stored message."""

    id: UUID
    turn_id: UUID
    role: Literal["user", "assistant"]
    content: str
    parts: list[Any]
    completed: bool
    token_count: int
    created_at: datetime
    external_id: str | None
    """The caller's own id of a message that was imported."""
    speaker: str | None
    promise_id: UUID | None
    """Promise that the assistant has kept with it."""


@dataclass(frozen=True)
class _FoundMessage(Message):
    found: int
    """Number of messages of the page from this one on."""


Cursor = tuple[datetime, UUID]
"""A position in a list: `(created_at, id)` of the last item seen."""


class Transcript:
    """Reads conversations and messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def conversations(
        self,
        tenant_id: UUID,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        space: str | None = None,
        pinned: bool | None = None,
        contains: str | None = None,
        after: Cursor | None = None,
        limit: int,
    ) -> Sequence[Conversation]:
        """Conversations of the tenant, of one of its users, of one session name or of one space, newest first.
        With `contains`, those in whose title or messages it stands, in capitals or not."""
        about: dict[str, Any] = {"user_id": user_id, "session_id": session_id, "space": space, "pinned": pinned}
        if contains is None or self._database.vault is None:
            return await self._conversations(tenant_id, {**about, "contains": contains}, after, limit)
        return await self._scan(tenant_id, about, contains.lower(), after, limit)

    async def change(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        *,
        user_id: str | None = None,
        title: str | None = None,
        pinned: bool | None = None,
    ) -> Conversation:
        """Rename a conversation, pin it or unpin it. Raises `NotFound` if the tenant, or the user, has no such
        conversation."""
        await self.conversation(tenant_id, conversation_id, user_id=user_id)
        values = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "title": None if title is None else Words(title),
            "pinned": pinned,
        }
        await self._database.fetch(tenant_id, _CHANGE, values, tuple_row)
        return await self.conversation(tenant_id, conversation_id, user_id=user_id)

    async def conversation(
        self, tenant_id: UUID, conversation_id: UUID, *, user_id: str | None = None
    ) -> Conversation:
        """One conversation, of any user or only when it is this one's. Raises `NotFound` if the tenant, or the
        user, has no such conversation."""
        found = await self._conversations(tenant_id, {"user_id": user_id, "id": conversation_id}, None, 1)
        if not found:
            raise NotFound(f"There is no conversation {conversation_id}.")
        return found[0]

    async def newest(self, tenant_id: UUID, conversation_id: UUID, count: int) -> Sequence[Message]:
        """Return the newest messages of a conversation's current course, in the order in which they were said."""
        parts = self.page_in_parts(tenant_id, conversation_id, after=None, limit=count, newest_first=True)
        return [message async for part in parts for message in part][::-1]

    async def page_in_parts(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        *,
        user_id: str | None = None,
        after: Cursor | None,
        limit: int,
        newest_first: bool = False,
    ) -> AsyncGenerator[Sequence[Message]]:
        """Yield messages of a conversation's current course, incomplete ones among them, oldest or newest first.

        Each part has at most 1 MB, or one message.

        Raises:
            NotFound: the tenant, or the user, has no such conversation.
            DatabaseUnavailable: the database does not answer; also in the midst of the page.
        """
        await self.conversation(tenant_id, conversation_id, user_id=user_id)
        while limit > 0:
            values = {
                "tenant_id": tenant_id,
                "conversation_id": conversation_id,
                "part_bytes": _PART_BYTES,
                **page_after(after, limit),
            }
            statement = _PART_OF_NEWEST if newest_first else _PART_OF_MESSAGES
            part = await self._database.fetch(tenant_id, statement, values, class_row(_FoundMessage))
            if not part:
                return
            yield part
            if part[0].found == len(part):
                return
            after, limit = (part[-1].created_at, part[-1].id), limit - len(part)

    async def message(self, tenant_id: UUID, message_id: UUID, *, conversation_id: UUID | None = None) -> Message:
        """One message of the tenant, of any conversation or only when it is of this one. Raises `NotFound` if
        there is none."""
        values = {"tenant_id": tenant_id, "message_id": message_id, "conversation_id": conversation_id}
        found = await self._database.fetch(tenant_id, _MESSAGE, values, class_row(Message))
        if not found:
            raise NotFound(f"There is no message {message_id}.")
        return found[0]

    async def _scan(
        self, tenant_id: UUID, about: dict[str, Any], sought: str, after: Cursor | None, limit: int
    ) -> list[Conversation]:
        """Search page by page for a text that the database cannot read."""
        found: list[Conversation] = []
        while page := await self._conversations(tenant_id, about, after, _SCANNED_AT_ONCE):
            values = {"tenant_id": tenant_id, "ids": [one.id for one in page]}
            said = await self._database.fetch(tenant_id, _SAID_IN, values, tuple_row)
            hits = {conversation_id for conversation_id, content in said if sought in content.lower()}
            found += [one for one in page if one.id in hits or sought in one.title.lower()]
            if len(found) >= limit or len(page) < _SCANNED_AT_ONCE:
                break
            after = (page[-1].created_at, page[-1].id)
        return found[:limit]

    async def _conversations(
        self, tenant_id: UUID, about: Mapping[str, Any], after: Cursor | None, limit: int
    ) -> list[Conversation]:
        values = {**_OF_ALL, **about, "tenant_id": tenant_id, **page_after(after, limit)}
        found = await self._database.fetch(tenant_id, _CONVERSATIONS, values, class_row(Conversation))
        return [replace(one, title=title_of(one.title, LONGEST_TITLE)) for one in found]
