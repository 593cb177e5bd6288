"""Summaries of visits, made when a visit has ended."""

from uuid import UUID

import structlog

from services.errors import BadModelOutput, Conflict
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.platform.authorship import authoring
from services.platform.metrics import VISIT_SUMMARIES
from services.summaries.day_store import DayStore, DayVisit
from services.summaries.day_writer import DayWriter, WrittenSummary, by_rule
from services.time_reference.local_days import local_day
from services.visits.visit import SUMMARISE_VISIT, VisitSchedule

RETRIES = 3
"""Times that a visit or a day is read again in which something was retracted meanwhile."""

log = structlog.get_logger(__name__)


class VisitSummaries:
    """Summarises visits. Every process with a worker has one: it registers the job."""

    def __init__(self, store: DayStore, writer: DayWriter, schedule: VisitSchedule, jobs: JobQueue) -> None:
        self._store = store
        self._writer = writer
        self._schedule = schedule
        jobs.task(SUMMARISE_VISIT, can_wait=True)(self._job)

    async def of(self, tenant_id: UUID, visit: DayVisit) -> WrittenSummary | None:
        """What a visit was about: as it was summarised, or summarised now; None if there is nothing to tell.

        Of a visit that goes on, or is too short for a summary, it is what the user said; that is not stored.

        Raises:
            Conflict: something in its conversation was retracted meanwhile; what it was about is not to be told.
            ModelFailed: the model did not answer.
            BadModelOutput: what it answered is no summary, twice.
        """
        if visit.is_summarised and visit.summary:
            return WrittenSummary.model_construct(summary=visit.summary, key_topics=visit.key_topics)
        said = [(message.role, message.content) for message in await self._store.messages(tenant_id, visit)]
        if not said:
            return None
        characters = sum(len(content) for _, content in said)
        long_enough = self._schedule.is_summarised(len(said)) and characters >= self._schedule.shortest_characters
        if visit.ended_at is None or not long_enough:
            return await by_rule(said)
        with authoring():
            written = await self._writer.visit(said, local_day(visit.started_at, visit.timezone))
            stored = await self._store.write_visit(tenant_id, visit, written.summary, written.key_topics)
        if stored:
            VISIT_SUMMARIES.labels("visit").inc()
            log.info("visit summarised", visit_id=str(visit.id), messages=len(said))
        else:
            now = await self._store.visit(tenant_id, visit.id)
            if now is not None and now.retracted_at != visit.retracted_at:
                raise Conflict("Something in the conversation was retracted while its visit was summarised.")
        return written

    async def summarise(self, tenant_id: UUID, visit_id: UUID) -> None:
        """Summarise a visit that has ended.

        Raises:
            Conflict: something in its conversation was retracted again and again meanwhile.
            ModelFailed: the model did not answer.
            BadModelOutput: what it answered is no summary, twice.
        """
        for left in reversed(range(RETRIES + 1)):
            visit = await self._store.visit(tenant_id, visit_id)
            if visit is None or visit.ended_at is None or not self._schedule.summaries:
                return
            try:
                await self.of(tenant_id, visit)
            except Conflict:
                if not left:
                    raise
            else:
                return

    async def _job(self, job: RunningJob, *, visit_id: UUID) -> None:
        try:
            await self.summarise(job.tenant_id, visit_id)
        except BadModelOutput as error:
            # Asked again at once it would answer the same; its day has it tried once more.
            log.warning("visit summary given up", visit_id=str(visit_id), reason=error.message)
            VISIT_SUMMARIES.labels("given_up").inc()
