"""Turns: one user message and all that answers it.

A turn is opened together with its user's message before anything can fail, and ended exactly once,
in the transaction that stores its answer.
"""

from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations.messages import image_part, message_tokens, title_of, without_nul
from services.conversations.turn import (
    MOST_WAITING,
    KnownTurn,
    NewTurn,
    OpenTurn,
    StoredTurn,
    TurnOutcome,
)
from services.errors import Conflict, InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.llm.tokens import IMAGE_TOKENS
from services.platform.postgres import Database

# Finds the user, the expert and the conversation, or makes them, stores the message and opens its turn. One
# statement, as it runs before the first token, under a lock of the conversation's name: so it sees every turn
# that was opened before. A conversation with an unfinished turn makes the new one wait. Where another
# transaction makes the same user, or starts a waiting turn, at this very moment, ours waits for it, stores
# nothing and answers nulls: then it is run again.
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
), unfinished AS (
    SELECT conversation.id,
        (SELECT id FROM turns t WHERE t.conversation_id = conversation.id
            AND t.idempotency_key = %(idempotency_key)s) AS known_turn_id,
        EXISTS (SELECT FROM turns t
            WHERE t.conversation_id = conversation.id AND t.status = 'running') AS running,
        (SELECT count(*) FROM turns t
            WHERE t.conversation_id = conversation.id AND t.status = 'waiting') AS waiting
    FROM conversation
), turn AS (
    INSERT INTO turns (id, tenant_id, conversation_id, user_message_id, status, idempotency_key, request,
                       lease_expires_at)
    SELECT %(turn_id)s, %(tenant_id)s, id, %(message_id)s,
        CASE WHEN running OR waiting > 0 THEN 'waiting' ELSE 'running' END, %(idempotency_key)s, %(request)s,
        now() + %(lease)s
    FROM unfinished
    WHERE known_turn_id IS NULL
      AND (NOT running AND waiting = 0 OR %(on_conflict)s::text <> 'reject' AND waiting < %(most_waiting)s)
    ON CONFLICT DO NOTHING
    RETURNING conversation_id, status
), message AS (
    INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, parts, completed, token_count)
    SELECT %(message_id)s, %(tenant_id)s, conversation_id, %(turn_id)s, 'user', %(content)s, %(parts)s,
        status = 'running', %(token_count)s
    FROM turn
)
SELECT person.id AS user_id, person.timezone, person.locale, turn.conversation_id, turn.status,
       expert.name AS expert, expert.system_prompt, expert.model,
       unfinished.known_turn_id, unfinished.running, unfinished.waiting
FROM expert LEFT JOIN person ON true LEFT JOIN unfinished ON true LEFT JOIN turn ON true
"""

# Other processes may have turns that wait for this one.
_END = """
WITH ended AS (
    UPDATE turns SET
        status = %(status)s, assistant_message_id = %(message_id)s, route_decision = %(route_decision)s,
        usage = %(usage)s, timings = %(timings)s, degraded = %(degraded)s, context_report = %(context_report)s,
        error = %(error)s, finished_at = clock_timestamp(), lease_expires_at = NULL
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = 'running'
      AND (NOT %(abandoned)s OR lease_expires_at < now())
    RETURNING conversation_id
), message AS (
    INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count)
    SELECT %(message_id)s, %(tenant_id)s, conversation_id, %(turn_id)s, 'assistant', %(content)s,
           %(status)s = 'completed', %(token_count)s
    FROM ended WHERE %(message_id)s::uuid IS NOT NULL
)
SELECT conversation_id, CASE WHEN EXISTS (
    SELECT FROM turns t WHERE t.conversation_id = ended.conversation_id AND t.status = 'waiting'
) THEN pg_notify('anamnesis_turns', 'next:' || conversation_id) END
FROM ended
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


@dataclass(frozen=True)
class _Found:
    user_id: UUID | None
    timezone: str | None
    locale: str | None
    conversation_id: UUID | None
    """None where no turn was opened."""
    status: str | None
    expert: str
    system_prompt: str
    model: str | None
    known_turn_id: UUID | None
    running: bool | None
    waiting: int | None


class Turns:
    """Opens, ends and reads turns."""

    def __init__(self, database: Database, jobs: JobQueue) -> None:
        self._database = database
        self._jobs = jobs

    async def open(self, new: NewTurn) -> OpenTurn:
        """Store the user's message and open its turn; the user and the conversation come into being.

        Raises:
            Conflict: also, a turn with this idempotency key has been opened before.
            InvalidInput, DatabaseUnavailable: as `open_or_find`.
        """
        turn = await self.open_or_find(new)
        if isinstance(turn, KnownTurn):
            raise Conflict("There is a turn with this idempotency key.")
        return turn

    async def open_or_find(self, new: NewTurn) -> OpenTurn | KnownTurn:
        """The same, or find the turn that was opened with the same idempotency key in this conversation.

        Raises:
            InvalidInput: there is no such expert.
            Conflict: the conversation has an unfinished turn and the message may not wait, or too many do.
            DatabaseUnavailable: nothing was stored, unless the connection broke in the moment of the commit.
        """
        turn_id, message_id = uuid7(), uuid7()
        values = _values(new, turn_id, message_id)
        lock = f"{new.tenant_id} {new.external_user_id} {new.session_key}"
        while True:
            try:
                found = await self._database.fetch(new.tenant_id, _OPEN, values, class_row(_Found), lock=lock)
            except psycopg.errors.ForeignKeyViolation:  # the user was erased at this moment, and comes anew
                continue
            if not found:
                raise InvalidInput("expert", f"there is no expert named {new.expert!r}")
            one = found[0]
            if one.known_turn_id is not None:
                return KnownTurn(one.known_turn_id, new.tenant_id)
            if one.user_id and one.conversation_id and one.timezone:
                break
            _refuse_conflict(one, new)
        return OpenTurn(
            turn_id=turn_id,
            tenant_id=new.tenant_id,
            user_id=one.user_id,
            conversation_id=one.conversation_id,
            user_message_id=message_id,
            answer_message_id=uuid7(),
            timezone=new.timezone or one.timezone,
            locale=new.locale or one.locale,
            expert=one.expert,
            system_prompt=one.system_prompt,
            model=one.model,
            waiting=one.status == "waiting",
        )

    async def end(
        self,
        tenant_id: UUID,
        turn_id: UUID,
        answer_message_id: UUID,
        outcome: TurnOutcome,
        *,
        abandoned: bool = False,
    ) -> None:
        """End a running turn: its answer, its row and the jobs that it causes, in one transaction.

        An outcome without text stores no message. Ending it again with the same `answer_message_id`,
        as after a commit whose acknowledgement was lost, changes nothing. With `abandoned`, it is ended
        only if its process is gone.

        Raises:
            Conflict: the turn has ended otherwise, or its process lives.
        """
        content = without_nul(outcome.answer)
        message_id = answer_message_id if content else None
        values = {
            "status": outcome.status,
            "message_id": message_id,
            "turn_id": turn_id,
            "tenant_id": tenant_id,
            "abandoned": abandoned,
            "content": content,
            "token_count": message_tokens(content),
            "route_decision": _jsonb(outcome.route_decision),
            "usage": _jsonb(outcome.usage),
            "timings": _jsonb(outcome.timings),
            "degraded": Jsonb(list(outcome.degraded)),
            "context_report": _jsonb(outcome.context_report),
            "error": _jsonb(outcome.error),
        }
        async with self._database.tenant(tenant_id) as connection:
            row = await (await connection.execute(_END, values)).fetchone()
            if row is None:
                again = {name: values[name] for name in ("turn_id", "tenant_id", "status", "message_id")}
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


def _values(new: NewTurn, turn_id: UUID, message_id: UUID) -> dict[str, Any]:
    content = without_nul(new.content)
    return {
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
        "idempotency_key": new.idempotency_key,
        "on_conflict": new.on_conflict,
        "most_waiting": MOST_WAITING,
        "request": Jsonb(new.request),
        "lease": new.lease,
    }


def _refuse_conflict(found: _Found, new: NewTurn) -> None:
    if new.on_conflict == "reject" and (found.running or found.waiting):
        raise Conflict("A turn of this conversation is under way.")
    if found.waiting is not None and found.waiting >= MOST_WAITING:
        raise Conflict(f"{MOST_WAITING} messages wait in this conversation already; try again later.")


def _jsonb(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(value)
