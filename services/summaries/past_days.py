"""Records of the days that a message asks about, read without a model.

A prepared summary is read as it is. A day without one is described by the summaries of its visits, or else by what
both said, which may also be limited to a part of the day; its summary is then made in the background.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, groupby
from operator import attrgetter
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.memory.core.blocks import Owner
from services.platform.postgres import Database
from services.summaries.daily_summaries import DailySummaries, Day
from services.summaries.day_store import DayVisit
from services.summaries.prompts import SaidMessage
from services.text.marks import one_line
from services.time_reference.local_days import bounds, hours_of, local_day
from state.prompt import TimeReference

# Some exchanges of each visit, from its beginning to its end: a message of the user and the answer to it. Under
# row-level security only plain bounds use the index.
_SAMPLE: LiteralString = """
SELECT m.id, v.id AS visit_id, m.role, m.content, m.speaker, m.created_at
FROM unnest(%(visit_ids)s::uuid[]) AS wanted (id)
JOIN visits v ON v.id = wanted.id AND v.tenant_id = %(tenant_id)s
CROSS JOIN LATERAL (
    SELECT m.*, count(*) FILTER (WHERE m.role = 'user') OVER (ORDER BY m.created_at, m.id) AS number,
        count(*) FILTER (WHERE m.role = 'user') OVER () AS total
    FROM remembered_messages m
    WHERE m.conversation_id = v.conversation_id AND m.completed
      AND m.created_at >= v.started_at AND m.created_at <= v.last_active_at
) AS m
WHERE m.number > 0 AND (m.number * %(most)s) / m.total <> ((m.number - 1) * %(most)s) / m.total
ORDER BY m.created_at, m.id
"""

_NEWEST: LiteralString = """
SELECT m.id, m.role, m.content, m.speaker, m.created_at
FROM conversations c CROSS JOIN LATERAL (
    SELECT m.* FROM remembered_messages m
    WHERE m.conversation_id = c.id AND m.completed AND m.created_at >= %(lower)s AND m.created_at < %(upper)s
    ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
) AS m
WHERE c.user_id = %(user_id)s AND c.tenant_id = %(tenant_id)s AND c.expert_id = %(expert_id)s
  AND (c.space_id IS NULL OR c.space_id = %(space_id)s) AND m.id <> %(but)s
ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
"""


_MOST_SAMPLED = 120
"""Maximum exchanges that are read in place of missing summaries, for all days together."""
_LEAST_SAMPLED = 3
_MOST_RAW = 200
"""Maximum newest messages that are read verbatim."""
_MOST_PREPARED = 10
"""Maximum days that are summarised after one answer."""


@dataclass(frozen=True)
class DaysQuery:
    """A question about days: their owner and range, and the turn that asks."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    reference: TimeReference
    message: str
    now: datetime
    timezone: str


@dataclass(frozen=True)
class ToldDay:
    """Records of a local day."""

    date: date
    text: str
    """Summary of the day, or summaries of its visits; may be empty."""
    key_topics: Sequence[str]
    said: Sequence[SaidMessage] = ()
    """Some exchanges of visits that have no summary yet, in order."""


@dataclass(frozen=True)
class DaysResult:
    """Records of the days in question."""

    start: date
    """The first day in question; for the last visit, its day."""
    end: date
    days: Sequence[ToldDay] = ()
    """Days with messages, oldest first."""
    said: Sequence[SaidMessage] = ()
    """Verbatim messages in order, for a question about a detail or if there is nothing else."""
    unprepared: Sequence[UUID] = ()
    """One visit for each past day whose summary is missing or stale."""
    closest: Sequence[date] = ()
    """For an empty range: the nearest past days with messages, at most one on either side."""
    whole_day: bool = False
    """Whether the hours in question were empty, so that this is the whole day."""
    known: bool = True
    """False = the days could not be read."""

    def without(self, message_ids: Collection[str]) -> "DaysResult":
        """Return the days without these messages; summaries of days stay."""
        if not message_ids:
            return self
        days = [replace(day, said=_but(day.said, message_ids)) for day in self.days]
        return replace(self, days=days, said=_but(self.said, message_ids))


def _but(said: Sequence[SaidMessage], message_ids: Collection[str]) -> list[SaidMessage]:
    return [message for message in said if str(message.id) not in message_ids]


def not_known(asked: DaysQuery) -> DaysResult:
    """Return a placeholder for days that cannot be read."""
    today = local_day(asked.now, asked.timezone)
    reference = asked.reference
    return DaysResult(reference["start_date"] or today, reference["end_date"] or today, known=False)


class PastDays:
    """Reads the records of days, or of the last visit."""

    def __init__(self, daily: DailySummaries, database: Database, *, most_tokens: int) -> None:
        """Take the maximum tokens that days may use in a prompt."""
        self._daily = daily
        self._database = database
        self.most_tokens = most_tokens

    async def read(self, asked: DaysQuery) -> DaysResult:
        days, start, end = await self._days(asked)
        today = local_day(asked.now, asked.timezone)
        unprepared = [day.visits[0].id for day in days if day.fresh is None and day.date < today][-_MOST_PREPARED:]
        hours = asked.reference["hours"]
        if hours and days:
            lower, upper = hours_of(start, hours, asked.timezone)
            said = await self._newest(asked, lower, upper)
            if said:
                return DaysResult(start, end, [ToldDay(start, "", (), said)], said, unprepared)
        told = await self._told(asked, days)
        lower, upper = bounds(start, end, asked.timezone)
        said = []
        if asked.reference["detail"] or not told:
            said = await self._newest(asked, lower, upper)
        closest: list[date] = []
        if not told and not said:
            until, _ = bounds(today, today, asked.timezone)
            nearest = await self._daily.store.nearest(asked.owner, lower, upper, until)
            closest = [local_day(each, asked.timezone) for each in nearest]
        return DaysResult(start, end, told, said, unprepared, closest, whole_day=bool(hours and told))

    async def _days(self, asked: DaysQuery) -> tuple[list[Day], date, date]:
        start, end = asked.reference["start_date"], asked.reference["end_date"]
        if start is not None and end is not None:
            owners = dict.fromkeys((asked.owner.shared, asked.owner))
            found = [await self._daily.days(owner, start, end, asked.timezone) for owner in owners]
            return sorted(chain.from_iterable(found), key=lambda day: day.date), start, end
        visit = await self._daily.store.visit_before(
            asked.owner, asked.conversation_id, asked.now, this_sitting=asked.reference["kind"] == "just_now"
        )
        today = local_day(asked.now, asked.timezone)
        if visit is None:
            return [], today, today
        day = local_day(visit.started_at, asked.timezone)
        return [Day(day, [visit], None)], day, day

    async def _told(self, asked: DaysQuery, days: Sequence[Day]) -> list[ToldDay]:
        visits = [visit for day in days if day.fresh is None for visit in day.visits if not visit.is_summarised]
        samples = await self._sampled(asked.owner.tenant_id, visits, but=asked.message_id)
        told = (_told(list(same), samples) for _, same in groupby(days, key=attrgetter("date")))
        return [each for each in told if each is not None]

    async def _newest(self, asked: DaysQuery, lower: datetime, upper: datetime) -> list[SaidMessage]:
        """Return the newest messages from `lower` to before `upper`, in order, without the one being answered."""
        values = {**vars(asked.owner), "lower": lower, "upper": upper, "but": asked.message_id, "limit": _MOST_RAW}
        found = await self._database.fetch(asked.owner.tenant_id, _NEWEST, values, class_row(SaidMessage))
        return found[::-1]

    async def _sampled(
        self, tenant_id: UUID, visits: Sequence[DayVisit], *, but: UUID
    ) -> dict[UUID, list[SaidMessage]]:
        samples: dict[UUID, list[SaidMessage]] = defaultdict(list)
        if visits:
            most = max(_LEAST_SAMPLED, _MOST_SAMPLED // len(visits))
            values = {"tenant_id": tenant_id, "visit_ids": [visit.id for visit in visits], "most": most}
            for message in await self._database.fetch(tenant_id, _SAMPLE, values, class_row(SaidMessage)):
                if message.visit_id and message.id != but:
                    samples[message.visit_id].append(message)
        return samples


def _told(same: Sequence[Day], samples: dict[UUID, list[SaidMessage]]) -> ToldDay | None:
    """Return the records of a day; `same` are its parts inside and outside a space."""
    texts: list[str] = []
    topics: list[str] = []
    said: list[SaidMessage] = []
    for day in same:
        if day.fresh:
            texts.append(day.fresh.summary)
            topics += day.fresh.key_topics
            continue
        for visit in day.visits:
            if visit.is_summarised and visit.summary:
                texts.append(visit.summary)
                topics += visit.key_topics
            else:
                said += samples.get(visit.id, [])
    said.sort(key=attrgetter("created_at"))
    text = one_line(" ".join(texts))
    return ToldDay(same[0].date, text, list(dict.fromkeys(topics)), said) if texts or said else None
