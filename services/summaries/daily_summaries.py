"""Daily summaries: what a user and an expert talked about on a local day, from that day's visits.

A visit belongs to the day on which it began, also when it goes on over midnight. A summary names the visits that
it was made from, so whether it still says all of its day can be seen at any time: nobody has to mark it.
"""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

import structlog

from services.errors import AnamnesisError, BadModelOutput, Conflict, DatabaseUnavailable
from services.memory.blocks import Owner
from services.platform.authorship import authoring
from services.platform.metrics import VISIT_SUMMARIES
from services.summaries.day_store import DayStore, DayVisit, NewDay, StoredDay
from services.summaries.day_writer import DayWriter, WrittenSummary
from services.summaries.visit_summaries import RETRIES, VisitSummaries
from services.time_reference.local_days import bounds, local_day

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Day:
    """A local day with messages."""

    date: date
    visits: Sequence[DayVisit]
    """Visits that began on the day, oldest first."""
    stored: StoredDay | None
    """The stored summary, fresh or stale."""

    @property
    def stale(self) -> bool:
        """Whether the summary misses part of the day, or belongs to another zone's day."""
        return self.stored is not None and not self.stored.is_of(self.visits)

    @property
    def fresh(self) -> StoredDay | None:
        """The summary if it covers the whole day."""
        return None if self.stale else self.stored


class DailySummaries:
    """Reads and makes the summaries of days."""

    def __init__(self, store: DayStore, visits: VisitSummaries, writer: DayWriter) -> None:
        self.store = store
        self.visits = visits
        self._writer = writer

    async def days(self, owner: Owner, start: date, end: date, timezone: str) -> list[Day]:
        """The days from `start` to `end`, in that zone, on which a visit began, oldest first; one round trip."""
        stored, visits = await self.store.days(owner, start, end, *bounds(start, end, timezone))
        by_date: Mapping[date, StoredDay] = {day.date: day for day in stored}
        by_day: dict[date, list[DayVisit]] = defaultdict(list)
        for visit in visits:
            by_day[local_day(visit.started_at, timezone)].append(visit)
        return [Day(day, found, by_date.get(day)) for day, found in sorted(by_day.items())]

    async def past_days(self, tenant_id: UUID, now: datetime) -> list[tuple[Owner, date, str]]:
        """Every day of a tenant's users that is over and on which a visit began, with the user's zone."""
        found = []
        for owner, timezone in await self.store.owners(tenant_id):
            today = local_day(now, timezone)
            days = {local_day(at, timezone) for at in await self.store.starts(owner)}
            found += [(owner, day, timezone) for day in sorted(days) if day < today]
        return found

    async def make(self, owner: Owner, day: date, timezone: str) -> bool:
        """Make the summary of a day, if it is missing or stale; return whether it was made.

        Summaries of its visits that are missing are made first. A day with one visit has that visit's
        summary, without asking the model.

        Raises:
            ModelFailed: the model did not answer; the day stays as it was.
            BadModelOutput: what it answered is no summary, twice; the day stays as it was.
            Conflict: something said on it was retracted again and again meanwhile; the day stays as it was.
        """
        with authoring():
            for _ in range(RETRIES):
                with contextlib.suppress(Conflict):
                    return await self._make(owner, day, timezone)
            return await self._make(owner, day, timezone)

    async def _make(self, owner: Owner, day: date, timezone: str) -> bool:
        found = await self.days(owner, day, day, timezone)
        if not found:
            await self.store.remove_day(owner, day)
            return False
        visits = found[0].visits
        made = found[0].fresh is None
        if made:
            written = await self._written(owner, visits)
            if written is None:
                made = False
                await self.store.remove_day(owner, day)
            else:
                new = NewDay(day, timezone, written.summary, written.key_topics, visits)
                if not await self.store.write_day(owner, new):
                    raise Conflict("Something said on the day was retracted while it was summarised.")
                VISIT_SUMMARIES.labels("day").inc()
                log.info("day summarised", user_id=str(owner.user_id), visits=len(visits))
        await self.store.done(owner.tenant_id, visits)
        return made

    async def try_to_make(self, owner: Owner, day: date, timezone: str) -> bool:
        """The same, but failures are logged. A day whose summary is given up is no longer due."""
        try:
            return await self.make(owner, day, timezone)
        except AnamnesisError as error:
            log.warning("day not summarised", user_id=str(owner.user_id), reason=error.message)
            if isinstance(error, BadModelOutput):
                VISIT_SUMMARIES.labels("given_up").inc()
                with contextlib.suppress(DatabaseUnavailable):
                    for found in await self.days(owner, day, day, timezone):
                        await self.store.done(owner.tenant_id, found.visits)
            return False

    async def _written(self, owner: Owner, visits: Sequence[DayVisit]) -> WrittenSummary | None:
        told = [await self.visits.of(owner.tenant_id, visit) for visit in visits]
        found = [each for each in told if each is not None]
        if len(found) <= 1:
            return found[0] if found else None
        topics = [topic for each in found for topic in each.key_topics]
        return await self._writer.day([each.summary for each in found], topics)
