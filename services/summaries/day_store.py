"""Summaries of visits and days in PostgreSQL, with their sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from services.encryption.marks import Words, WordsInJson
from services.memory.as_of import as_of
from services.memory.core.blocks import Owner
from services.platform.authorship import made_by
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.summaries.prompts import Said
from services.summaries.writer import WrittenSummary
from services.text.tokenizer import indexed_text

_BREAK = timedelta(minutes=30)
"""Maximum pause within a sitting."""
_MOST_OF_A_SITTING = 50
"""Maximum visits that are read to find the beginning of a sitting."""

_VISIT: LiteralString = """
SELECT v.id, v.conversation_id, v.user_id, v.expert_id, v.space_id, v.started_at, v.last_active_at, v.ended_at,
       v.message_count, v.summary, v.key_topics, v.summarised_count, c.retracted_at, u.timezone
FROM visits v JOIN conversations c ON c.id = v.conversation_id JOIN users u ON u.id = v.user_id
"""

_ONE: LiteralString = f"""{_VISIT}
WHERE v.id = %(id)s AND v.tenant_id = %(tenant_id)s
"""

# The bounds are plain values: under row-level security the index is used for nothing else.
_BETWEEN: LiteralString = f"""{_VISIT}
WHERE v.user_id = %(user_id)s AND v.tenant_id = %(tenant_id)s AND v.expert_id = %(expert_id)s
  AND v.space_id IS NOT DISTINCT FROM %(space_id)s
  AND v.started_at >= %(lower)s AND v.started_at < %(upper)s AND v.message_count > 0
ORDER BY v.started_at, v.id
"""

# In any conversation, newest first; the visit that continues in the conversation of the question is left out.
_BEFORE: LiteralString = f"""{_VISIT}
WHERE v.user_id = %(user_id)s AND v.tenant_id = %(tenant_id)s AND v.expert_id = %(expert_id)s
  AND (v.space_id IS NULL OR v.space_id = %(space_id)s)
  AND v.started_at < %(now)s AND NOT (v.conversation_id = %(conversation_id)s AND v.ended_at IS NULL)
ORDER BY v.started_at DESC, v.id DESC LIMIT %(limit)s
"""

_NEAREST: LiteralString = """
SELECT
    (SELECT max(started_at) FROM visits WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s
        AND expert_id = %(expert_id)s AND (space_id IS NULL OR space_id = %(space_id)s)
        AND message_count > 0 AND started_at < %(lower)s),
    (SELECT min(started_at) FROM visits WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s
        AND expert_id = %(expert_id)s AND (space_id IS NULL OR space_id = %(space_id)s) AND message_count > 0
        AND started_at >= %(upper)s AND started_at < %(until)s)
"""

_DAYS: LiteralString = """
SELECT date, timezone, summary, key_topics, session_count, message_count, visit_ids, updated_at
FROM daily_summaries
WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s AND expert_id = %(expert_id)s
  AND space_id IS NOT DISTINCT FROM %(space_id)s AND date >= %(start)s AND date <= %(end)s
ORDER BY date
"""

_MESSAGES: LiteralString = """
SELECT role, content, speaker FROM remembered_messages
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s AND completed
  AND created_at >= %(started_at)s AND created_at <= %(last_active_at)s
ORDER BY created_at, id
"""

# A summary of a conversation is stored only if nothing in the conversation was retracted since it was read. A
# retraction locks the conversation before it withdraws anything, so it comes entirely before or after this
# statement.
_UNRETRACTED: LiteralString = """
WITH unretracted AS (
    SELECT c.id FROM conversations c
    JOIN unnest(%(conversation_ids)s::uuid[], %(retracted_ats)s::timestamptz[]) AS read (id, retracted_at)
        ON read.id = c.id AND read.retracted_at IS NOT DISTINCT FROM c.retracted_at
    WHERE c.tenant_id = %(tenant_id)s ORDER BY c.id FOR SHARE OF c
)
"""

# Only if no message has come since.
_SUMMARISED: LiteralString = f"""{_UNRETRACTED}
UPDATE visits SET summary = %(summary)s, key_topics = %(key_topics)s, summary_generated_at = now(),
    summarised_count = message_count, made_by = %(made_by)s
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND message_count = %(message_count)s
  AND conversation_id IN (SELECT id FROM unretracted)
RETURNING id
"""  # noqa: S608 — our own text only

_WRITE: LiteralString = f"""{_UNRETRACTED}
INSERT INTO daily_summaries (user_id, expert_id, space_id, date, tenant_id, timezone, summary, key_topics,
    session_count, message_count, visit_ids, made_by)
SELECT %(user_id)s, %(expert_id)s, %(space_id)s, %(date)s, %(tenant_id)s, %(timezone)s, %(summary)s,
    %(key_topics)s, %(session_count)s, %(message_count)s, %(visit_ids)s, %(made_by)s
WHERE (SELECT count(*) FROM unretracted) = cardinality(%(conversation_ids)s::uuid[])
ON CONFLICT (user_id, expert_id, date, space_id, tenant_id) DO UPDATE SET
    timezone = EXCLUDED.timezone, summary = EXCLUDED.summary, key_topics = EXCLUDED.key_topics,
    session_count = EXCLUDED.session_count, message_count = EXCLUDED.message_count,
    visit_ids = EXCLUDED.visit_ids, made_by = EXCLUDED.made_by, updated_at = clock_timestamp()
RETURNING date
"""  # noqa: S608 — our own text only

# A day can lose all its visits: when the user's zone changes, or when a late message joins one to the day before.
_REMOVE: LiteralString = """
DELETE FROM daily_summaries
WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s AND expert_id = %(expert_id)s AND date = %(date)s
  AND space_id IS NOT DISTINCT FROM %(space_id)s
RETURNING date
"""

# Only visits in the state in which their day was summarised; one that has changed since stays due.
_DONE: LiteralString = f"""{_UNRETRACTED}
UPDATE visits SET daily_due_at = NULL
FROM unnest(%(ids)s::uuid[], %(counts)s::integer[]) AS done (id, message_count)
WHERE visits.id = done.id AND visits.tenant_id = %(tenant_id)s AND visits.message_count = done.message_count
  AND visits.ended_at IS NOT NULL AND visits.conversation_id IN (SELECT id FROM unretracted)
RETURNING visits.id
"""  # noqa: S608 — our own text only

_STARTS: LiteralString = """
SELECT v.user_id, v.expert_id, v.space_id, u.timezone, v.started_at FROM visits v JOIN users u ON u.id = v.user_id
WHERE v.tenant_id = %(tenant_id)s ORDER BY 1, 2, 3, 5
"""


@dataclass(frozen=True)
class DayVisit:
    """A visit with what the summary of its day needs."""

    id: UUID
    conversation_id: UUID
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    started_at: datetime
    last_active_at: datetime
    ended_at: datetime | None
    message_count: int
    summary: str | None
    key_topics: list[str]
    summarised_count: int
    retracted_at: datetime | None
    """Time of the last retraction in its conversation."""
    timezone: str
    """Time zone of the user."""

    @property
    def is_summarised(self) -> bool:
        """Return whether its summary covers all of it."""
        return self.summary is not None and self.summarised_count == self.message_count


@dataclass(frozen=True)
class StoredDay:
    """The summary of a user's local day."""

    date: date
    timezone: str
    """Time zone of the day."""
    summary: str
    key_topics: list[str]
    session_count: int
    """Visits that began on it."""
    message_count: int
    visit_ids: list[UUID]
    updated_at: datetime

    def is_of(self, visits: Sequence[DayVisit]) -> bool:
        """Return whether it was made from the present state of these visits."""
        return set(self.visit_ids) == {visit.id for visit in visits} and self.message_count == sum(
            visit.message_count for visit in visits
        )


class DayStore:
    """Reads and writes summaries of visits and days of a tenant's users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def visit(self, tenant_id: UUID, visit_id: UUID) -> DayVisit | None:
        """Return the visit; None if it no longer exists."""
        values = {"id": visit_id, "tenant_id": tenant_id}
        found = await self._database.fetch(tenant_id, _ONE, values, class_row(DayVisit))
        return found[0] if found else None

    async def visit_before(
        self, owner: Owner, conversation_id: UUID, now: datetime, *, this_sitting: bool = False
    ) -> DayVisit | None:
        """Return the last visit before the present sitting, or with `this_sitting` simply the last one.

        Visits in several conversations with only short breaks between them are one sitting, so that "last time" is
        not the chat of a minute ago. If there was no other sitting, it is that chat after all; None if there is
        none.
        """
        values = {**vars(owner), "conversation_id": conversation_id, "now": now, "limit": _MOST_OF_A_SITTING}
        found = await self._database.fetch(owner.tenant_id, _BEFORE, values, class_row(DayVisit))
        begun = now
        for visit in found if not this_sitting else ():
            if begun - visit.last_active_at > _BREAK:
                return visit
            begun = min(begun, visit.started_at)
        return found[0] if found else None

    async def nearest(self, owner: Owner, lower: datetime, upper: datetime, until: datetime) -> list[datetime]:
        """Return when the last visit before `lower` began, and the first from `upper` to before `until`, if
        any."""
        values = {**vars(owner), "lower": lower, "upper": upper, "until": until}
        [row] = await self._database.fetch(owner.tenant_id, _NEAREST, values, tuple_row)
        return [started_at for started_at in row if started_at is not None]

    async def days(
        self, owner: Owner, start: date, end: date, lower: datetime, upper: datetime
    ) -> tuple[list[StoredDay], list[DayVisit]]:
        """Return summaries of the days from `start` to `end`, and the visits that began between; one round
        trip. Summaries are of this space or of no space: a day with talks in both has two."""
        values = {**vars(owner), "start": start, "end": end, "lower": lower, "upper": upper}
        return await self._database.fetch_each(
            owner.tenant_id,
            Query(_DAYS, values, class_row(StoredDay)),
            Query(_BETWEEN, values, class_row(DayVisit)),
        )

    async def days_at(self, owner: Owner, start: date, end: date, at: datetime) -> list[StoredDay]:
        """Return the summaries of the days from `start` to `end` as they were at a moment, oldest first."""
        values = {**vars(owner), "start": start, "end": end, "as_of": at}
        return await self._database.fetch(owner.tenant_id, as_of(_DAYS), values, class_row(StoredDay))

    async def messages(self, tenant_id: UUID, visit: DayVisit) -> list[Said]:
        """Return who said what in the complete messages of a visit, oldest first."""
        values = {
            "conversation_id": visit.conversation_id,
            "tenant_id": tenant_id,
            "started_at": visit.started_at,
            "last_active_at": visit.last_active_at,
        }
        said = await self._database.fetch(tenant_id, _MESSAGES, values, tuple_row)
        return [(role, indexed_text(speaker or "", content)) for role, content, speaker in said]

    async def write_visit(self, tenant_id: UUID, visit: DayVisit, written: WrittenSummary) -> bool:
        """Store the summary of a visit; return False if its messages changed since they were read."""
        values = {
            **_conversations([visit]),
            "id": visit.id,
            "tenant_id": tenant_id,
            "user_id": visit.user_id,
            "message_count": visit.message_count,
            "summary": Words(written.summary),
            "key_topics": WordsInJson(written.key_topics),
            "made_by": Jsonb(made_by()),
        }
        return bool(await self._database.fetch(tenant_id, _SUMMARISED, values, tuple_row))

    async def write_day(
        self, owner: Owner, day: date, timezone: str, written: WrittenSummary, visits: Sequence[DayVisit]
    ) -> bool:
        """Store or replace the summary of a day; return False if something was retracted since visits were
        read."""
        values = {
            **_conversations(visits),
            **vars(owner),
            "date": day,
            "timezone": timezone,
            "summary": Words(written.summary),
            "key_topics": WordsInJson(written.key_topics),
            "session_count": len(visits),
            "message_count": sum(visit.message_count for visit in visits),
            "visit_ids": [visit.id for visit in visits],
            "made_by": Jsonb(made_by()),
        }
        return bool(await self._database.fetch(owner.tenant_id, _WRITE, values, tuple_row))

    async def remove_day(self, owner: Owner, day: date) -> None:
        await self._database.fetch(owner.tenant_id, _REMOVE, {**vars(owner), "date": day}, tuple_row)

    async def done(self, tenant_id: UUID, visits: Sequence[DayVisit]) -> None:
        """Mark the day of these visits as done, except for visits that have changed meanwhile."""
        values = {
            **_conversations(visits),
            "tenant_id": tenant_id,
            "ids": [visit.id for visit in visits],
            "counts": [visit.message_count for visit in visits],
        }
        await self._database.fetch(tenant_id, _DONE, values, tuple_row)

    async def starts(self, tenant_id: UUID) -> list[tuple[Owner, str, datetime]]:
        """Return when each visit of a tenant began, with its owner and the user's zone; by owner, oldest first."""
        rows = await self._database.fetch(tenant_id, _STARTS, {"tenant_id": tenant_id}, tuple_row)
        return [(Owner(tenant_id, *whose), timezone, at) for *whose, timezone, at in rows]


def _conversations(visits: Sequence[DayVisit]) -> dict[str, Any]:
    """Return the conversations of visits, each with the last retraction that was known when it was read."""
    read = {visit.conversation_id: visit.retracted_at for visit in visits}
    return {"conversation_ids": list(read), "retracted_ats": list(read.values())}
