"""Turns: one user message and all that answers it.

A turn is opened together with its user's message before anything can fail, and ended exactly once,
in the transaction that stores its answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations.messages import image_part, message_tokens, title_of, without_nul
from services.errors import Conflict, InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.llm.tokens import IMAGE_TOKENS
from services.platform.postgres import Database

TurnStatus = Literal["running", "completed", "partial", "failed", "cancelled"]

LEASE = timedelta(seconds=15)
"""A running turn whose process has not renewed its lease for so long has lost its process."""

# Finds the user, the expert and the conversation, or makes them, stores the message and opens its turn. One
# statement, as it runs before the first token. Where another transaction makes the same user or conversation
# at this moment, ours waits for it, stores nothing and answers a null: then it is run again.
_OPEN: LiteralString = """
WITH expert AS (
    SELECT e.* FROM experts e
    LEFT JOIN conversations c ON c.expert_id = e.id AND c.session_key = %(session_key)s
        AND c.user_id = (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(external_id)s)
    WHERE e.tenant_id = %(tenant_id)s AND (c.id IS NOT NULL OR e.name = coalesce(%(expert)s, 'default'))
    ORDER BY c.id IS NULL LIMIT 1
), known AS (
    SELECT id, timezone, locale FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(external_id)s
), made AS (
    INSERT INTO users (id, tenant_id, external_id, timezone, locale)
    SELECT %(new_user_id)s, %(tenant_id)s, %(external_id)s, coalesce(%(timezone)s, 'Asia/Shanghai'), %(locale)s
    FROM expert WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (tenant_id, external_id) DO NOTHING
    RETURNING id, timezone, locale
), person AS (
    SELECT * FROM known UNION ALL SELECT * FROM made
), going_on AS (
    SELECT c.id FROM conversations c JOIN person p ON c.user_id = p.id
    WHERE c.tenant_id = %(tenant_id)s AND c.session_key = %(session_key)s
), begun AS (
    INSERT INTO conversations (id, tenant_id, user_id, expert_id, session_key, title)
    SELECT %(new_conversation_id)s, %(tenant_id)s, person.id, expert.id, %(session_key)s, %(title)s
    FROM person, expert WHERE NOT EXISTS (SELECT FROM going_on)
    ON CONFLICT (tenant_id, user_id, session_key) DO NOTHING
    RETURNING id
), conversation AS (
    SELECT id FROM going_on UNION ALL SELECT id FROM begun
), message AS (
    INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, parts, completed, token_count)
    SELECT %(message_id)s, %(tenant_id)s, id, %(turn_id)s, 'user', %(content)s, %(parts)s, true, %(token_count)s
    FROM conversation
), turn AS (
    INSERT INTO turns (id, tenant_id, conversation_id, user_message_id, status, lease_expires_at)
    SELECT %(turn_id)s, %(tenant_id)s, id, %(message_id)s, 'running', now() + %(lease)s
    FROM conversation
)
SELECT person.id AS user_id, person.timezone, person.locale, conversation.id AS conversation_id,
       expert.name AS expert, expert.system_prompt, expert.model
FROM expert LEFT JOIN person ON true LEFT JOIN conversation ON true
"""

_END = """
WITH ended AS (
    UPDATE turns SET
        status = %(status)s, assistant_message_id = %(message_id)s, route_decision = %(route_decision)s,
        usage = %(usage)s, timings = %(timings)s, degraded = %(degraded)s, context_report = %(context_report)s,
        error = %(error)s, finished_at = clock_timestamp(), lease_expires_at = NULL
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = 'running'
    RETURNING conversation_id
), message AS (
    INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count)
    SELECT %(message_id)s, %(tenant_id)s, conversation_id, %(turn_id)s, 'assistant', %(content)s,
           %(status)s = 'completed', %(token_count)s
    FROM ended WHERE %(message_id)s::uuid IS NOT NULL
)
SELECT conversation_id FROM ended
"""

_ENDED_WITH = """
SELECT 1 FROM turns
WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = %(status)s
  AND assistant_message_id = %(message_id)s
"""

_GET = """
SELECT t.id, t.conversation_id, t.status, t.user_message_id, t.assistant_message_id, m.content AS answer,
       t.route_decision, t.usage, t.timings, t.degraded, t.context_report, t.error, t.started_at, t.finished_at
FROM turns t LEFT JOIN messages m ON m.id = t.assistant_message_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s
  AND (%(user_id)s::text IS NULL OR %(user_id)s = (
      SELECT u.external_id FROM conversations c JOIN users u ON u.id = c.user_id WHERE c.id = t.conversation_id
  ))
"""

_RENEW = """
UPDATE turns SET lease_expires_at = now() + %(lease)s
WHERE id = ANY(%(turn_ids)s) AND tenant_id = %(tenant_id)s AND status = 'running'
"""

_END_ABANDONED = """
UPDATE turns SET status = 'failed', finished_at = now(), lease_expires_at = NULL,
       error = '{"code": "interrupted", "message": "The service was interrupted.", "retryable": true}'
WHERE tenant_id = %(tenant_id)s AND status = 'running' AND lease_expires_at < now()
RETURNING id
"""


@dataclass(frozen=True)
class NewTurn:
    """What a caller asks for. `timezone` and `locale` are for this turn; a new user's are stored."""

    tenant_id: UUID
    external_user_id: str
    session_key: str
    content: str
    images: Sequence[str] = ()
    expert: str | None = None
    timezone: str | None = None
    locale: str | None = None


@dataclass(frozen=True)
class OpenTurn:
    """A turn whose message is stored, and what is needed to run it."""

    turn_id: UUID
    tenant_id: UUID
    user_id: UUID
    conversation_id: UUID
    user_message_id: UUID
    answer_message_id: UUID
    """Id that the answer will have: ending a turn twice with it stores one answer."""
    timezone: str
    locale: str | None
    expert: str
    system_prompt: str
    model: str | None


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended. `answer` is what was produced, whole or not."""

    status: TurnStatus
    answer: str = ""
    route_decision: Any = None
    usage: Any = None
    timings: Any = None
    degraded: Sequence[str] = ()
    context_report: Any = None
    error: Any = None


@dataclass(frozen=True)
class StoredTurn:
    """A turn as it stands in the database."""

    id: UUID
    conversation_id: UUID
    status: TurnStatus
    user_message_id: UUID
    assistant_message_id: UUID | None
    answer: str | None
    route_decision: Any
    usage: Any
    timings: Any
    degraded: list[str] = field(default_factory=list)
    context_report: Any = None
    error: Any = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class _Found:
    user_id: UUID | None
    timezone: str | None
    locale: str | None
    conversation_id: UUID | None
    expert: str
    system_prompt: str
    model: str | None


class Turns:
    """Opens, ends and reads turns."""

    def __init__(self, database: Database, jobs: JobQueue) -> None:
        self._database = database
        self._jobs = jobs

    async def open(self, new: NewTurn) -> OpenTurn:
        """Store the user's message and open its turn; the user and the conversation come into being.

        Raises:
            InvalidInput: there is no such expert.
            DatabaseUnavailable: nothing was stored, unless the connection broke in the moment of the commit.
        """
        content = without_nul(new.content)
        turn_id, message_id = uuid7(), uuid7()
        values = {
            "tenant_id": new.tenant_id,
            "external_id": new.external_user_id,
            "session_key": new.session_key,
            "expert": new.expert,
            "timezone": new.timezone,
            "locale": new.locale,
            "title": title_of(content),
            "new_user_id": uuid7(),
            "new_conversation_id": uuid7(),
            "turn_id": turn_id,
            "message_id": message_id,
            "content": content,
            "parts": Jsonb([image_part(image) for image in new.images]),
            "token_count": message_tokens(content) + IMAGE_TOKENS * len(new.images),
            "lease": LEASE,
        }
        found = await self._open(new, values)
        while found.user_id is None or found.conversation_id is None or found.timezone is None:
            found = await self._open(new, values)
        return OpenTurn(
            turn_id=turn_id,
            tenant_id=new.tenant_id,
            user_id=found.user_id,
            conversation_id=found.conversation_id,
            user_message_id=message_id,
            answer_message_id=uuid7(),
            timezone=new.timezone or found.timezone,
            locale=new.locale or found.locale,
            expert=found.expert,
            system_prompt=found.system_prompt,
            model=found.model,
        )

    async def end(self, tenant_id: UUID, turn_id: UUID, answer_message_id: UUID, outcome: TurnOutcome) -> None:
        """End a running turn: its answer, its row and the jobs that it causes, in one transaction.

        An outcome without text stores no message. Ending it again with the same `answer_message_id`,
        as after a commit whose acknowledgement was lost, changes nothing.

        Raises:
            Conflict: the turn has ended otherwise.
        """
        content = without_nul(outcome.answer)
        message_id = answer_message_id if content else None
        async with self._database.tenant(tenant_id) as connection:
            cursor = await connection.execute(
                _END,
                {
                    "status": outcome.status,
                    "message_id": message_id,
                    "turn_id": turn_id,
                    "tenant_id": tenant_id,
                    "content": content,
                    "token_count": message_tokens(content),
                    "route_decision": _jsonb(outcome.route_decision),
                    "usage": _jsonb(outcome.usage),
                    "timings": _jsonb(outcome.timings),
                    "degraded": Jsonb(list(outcome.degraded)),
                    "context_report": _jsonb(outcome.context_report),
                    "error": _jsonb(outcome.error),
                },
            )
            if (row := await cursor.fetchone()) is None:
                again = {
                    "turn_id": turn_id,
                    "tenant_id": tenant_id,
                    "status": outcome.status,
                    "message_id": message_id,
                }
                if await (await connection.execute(_ENDED_WITH, again)).fetchone():
                    return
                raise Conflict("This turn has ended already.")
            if outcome.status == "completed":
                await self._jobs.defer_after_turn(
                    connection, tenant_id=tenant_id, conversation_id=row[0], turn_id=turn_id
                )

    async def get(self, tenant_id: UUID, turn_id: UUID, *, user_id: str | None = None) -> StoredTurn:
        """Read a turn, of any user or only when it is this one's.

        Raises:
            NotFound: the tenant, or the user, has no such turn.
        """
        values = {"turn_id": turn_id, "tenant_id": tenant_id, "user_id": user_id}
        found = await self._database.fetch(tenant_id, _GET, values, class_row(StoredTurn))
        if not found:
            raise NotFound("There is no such turn.")
        return found[0]

    async def renew_leases(self, tenant_id: UUID, turn_ids: Sequence[UUID]) -> None:
        """Say that these turns are still being worked on."""
        async with self._database.tenant(tenant_id) as connection:
            values = {"turn_ids": list(turn_ids), "tenant_id": tenant_id, "lease": LEASE}
            await connection.execute(_RENEW, values)

    async def end_abandoned(self) -> list[UUID]:
        """End, as failed, every turn whose process is gone; return their ids."""
        ended: list[UUID] = []
        for tenant_id in await self._database.tenants():
            async with self._database.tenant(tenant_id) as connection:
                cursor = await connection.execute(_END_ABANDONED, {"tenant_id": tenant_id})
                ended.extend(row[0] for row in await cursor.fetchall())
        return ended

    async def _open(self, new: NewTurn, values: dict[str, Any]) -> _Found:
        found = await self._database.fetch(new.tenant_id, _OPEN, values, class_row(_Found))
        if not found:
            raise InvalidInput("expert", f"there is no expert named {new.expert!r}")
        return found[0]


def _jsonb(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(value)
