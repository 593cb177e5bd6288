"""Summaries of visits that have ended, and of a user's local days, made from the summaries of their visits.

A visit belongs to the day on which it began, even if it goes on after midnight. A summary names the visits from
which it was made; comparing them shows whether it is still complete, so nothing has to mark it as stale.
"""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

import structlog

from services.errors import AnamnesisError, BadModelOutput, Conflict, DatabaseUnavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.core.blocks import Owner
from services.platform.authorship import authoring
from services.platform.metrics import VISIT_SUMMARIES
from services.summaries.day_store import DayStore, DayVisit, StoredDay
from services.summaries.schedule import again_if_retracted
from services.summaries.writer import SummaryWriter, WrittenSummary, by_rule
from services.time_reference.local_days import bounds, local_day
from services.visits.visit import SUMMARISE_VISIT, VisitSchedule

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
        """Return whether the summary misses a part of the day, or is of the day in another zone."""
        return self.stored is not None and not self.stored.is_of(self.visits)

    @property
    def fresh(self) -> StoredDay | None:
        """Return the summary if it covers the whole day."""
        return None if self.stale else self.stored


class DailySummaries:
    """Reads and makes summaries of visits and days. Every process with a worker has one: it registers the job."""

    def __init__(self, store: DayStore, writer: SummaryWriter, schedule: VisitSchedule, jobs: JobQueue) -> None:
        self.store = store
        self._writer = writer
        self._schedule = schedule
        jobs.task(SUMMARISE_VISIT, can_wait=True)(self._job)

    async def of_visit(self, tenant_id: UUID, visit: DayVisit) -> WrittenSummary | None:
        """Return the summary of a visit, stored or made now; None if there is nothing to tell.

        For a visit that continues, or is too short, it consists of the user's own words and is not stored.

        Raises:
            Conflict: Something in its conversation was retracted meanwhile, so it must not be told.
            ModelFailed: The model did not answer.
            BadModelOutput: The model's answer was no summary, twice.
        """
        if visit.is_summarised and visit.summary:
            return WrittenSummary.model_construct(summary=visit.summary, key_topics=visit.key_topics)
        said = await self.store.messages(tenant_id, visit)
        if not said:
            return None
        characters = sum(len(content) for _, content in said)
        long_enough = self._schedule.is_summarised(len(said)) and characters >= self._schedule.shortest_characters
        if visit.ended_at is None or not long_enough:
            return await by_rule(said)
        with authoring():
            written = await self._writer.visit(said, local_day(visit.started_at, visit.timezone))
            stored = await self.store.write_visit(tenant_id, visit, written)
        if stored:
            VISIT_SUMMARIES.labels("visit").inc()
            log.info("visit summarised", visit_id=str(visit.id), messages=len(said))
        else:
            now = await self.store.visit(tenant_id, visit.id)
            if now is not None and now.retracted_at != visit.retracted_at:
                raise Conflict("Something in the conversation was retracted while its visit was summarised.")
        return written

    @again_if_retracted
    async def summarise_visit(self, tenant_id: UUID, visit_id: UUID) -> None:
        """Summarise a visit that has ended.

        Raises:
            Conflict: Something in its conversation was retracted again and again meanwhile.
            ModelFailed: The model did not answer.
            BadModelOutput: The model's answer was no summary, twice.
        """
        visit = await self.store.visit(tenant_id, visit_id)
        if visit is not None and visit.ended_at is not None and self._schedule.summaries:
            await self.of_visit(tenant_id, visit)

    async def _job(self, job: RunningJob, *, visit_id: UUID) -> None:
        try:
            await self.summarise_visit(job.tenant_id, visit_id)
        except BadModelOutput as error:
            # Asked again at once, the model would answer the same; the summary of the day makes another attempt.
            log.warning("visit summary given up", visit_id=str(visit_id), reason=error.message)
            VISIT_SUMMARIES.labels("given_up").inc()

    async def days(self, owner: Owner, start: date, end: date, timezone: str) -> list[Day]:
        """Return the days from `start` to `end` on which a visit began in that zone, oldest first; one round
        trip."""
        stored, visits = await self.store.days(owner, start, end, *bounds(start, end, timezone))
        by_date: Mapping[date, StoredDay] = {day.date: day for day in stored}
        by_day: dict[date, list[DayVisit]] = defaultdict(list)
        for visit in visits:
            by_day[local_day(visit.started_at, timezone)].append(visit)
        return [Day(day, found, by_date.get(day)) for day, found in sorted(by_day.items())]

    async def past_days(self, tenant_id: UUID, now: datetime) -> list[tuple[Owner, date, str]]:
        """Return every past day of a tenant's users on which a visit began, with the user's zone."""
        starts = await self.store.starts(tenant_id)
        days = dict.fromkeys((owner, local_day(at, timezone), timezone) for owner, timezone, at in starts)
        return [each for each in days if each[1] < local_day(now, each[2])]

    @again_if_retracted
    async def make(self, owner: Owner, day: date, timezone: str) -> bool:
        """Make the summary of a day if it is missing or stale; return whether it was made.

        Missing summaries of its visits are made first. A day with one visit gets the summary of that visit,
        without asking the model.

        Raises:
            ModelFailed: The model did not answer; the day stays as it was.
            BadModelOutput: The model's answer was no summary, twice; the day stays as it was.
            Conflict: Something said on the day was retracted again and again meanwhile; the day stays as it was.
        """
        found = await self.days(owner, day, day, timezone)
        if not found:
            await self.store.remove_day(owner, day)
            return False
        visits = found[0].visits
        made = found[0].fresh is None
        if made:
            with authoring():
                made = await self._write(owner, day, timezone, visits)
        await self.store.done(owner.tenant_id, visits)
        return made

    async def _write(self, owner: Owner, day: date, timezone: str, visits: Sequence[DayVisit]) -> bool:
        written = await self._written(owner, visits)
        if written is None:
            await self.store.remove_day(owner, day)
            return False
        if not await self.store.write_day(owner, day, timezone, written, visits):
            raise Conflict("Something said on the day was retracted while it was summarised.")
        VISIT_SUMMARIES.labels("day").inc()
        log.info("day summarised", user_id=str(owner.user_id), visits=len(visits))
        return True

    async def try_to_make(self, owner: Owner, day: date, timezone: str) -> bool:
        """Make a summary as `make` does, but log failures. A day whose summary is given up is no longer due."""
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
        told = [await self.of_visit(owner.tenant_id, visit) for visit in visits]
        found = [each for each in told if each is not None]
        if len(found) <= 1:
            return found[0] if found else None
        topics = [topic for each in found for topic in each.key_topics]
        return await self._writer.day([each.summary for each in found], topics)
