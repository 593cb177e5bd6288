"""Compression: merges duplicate episodes.

A run stages its texts beside the existing episodes, and swaps them in one transaction: a crash at any step, or an
unusable answer of a model, leaves memory unchanged. `CompressionUndo` restores exactly what was.
"""

import time
from collections.abc import Callable, Sequence
from uuid import UUID

import structlog

from services.compression.clusters import ClusterFinder
from services.compression.merging import GroupMerger
from services.compression.models import LONGEST_TEXT, Member, MergedText, Report
from services.compression.rules import CompressionRules
from services.compression.run import LostRun, Run, StoredRun
from services.compression.store import COMPRESS, CompressionStore
from services.compression.undo import CompressionUndo
from services.errors import BadModelOutput, Conflict, DatabaseUnavailable, NotFound, Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.chat_models import ChatModels
from services.memory.blocks import Owner
from services.platform.authorship import authoring
from services.platform.postgres import UNHURRIED_S, Database

_LONGEST_S = 420.0
"""Seconds after which the remaining groups wait for the next run; a job has ten minutes."""
_MOST_FAILURES = 5
"""Consecutive groups without an answer by the model after which the rest is left for later."""

log = structlog.get_logger(__name__)

OnStep = Callable[[int, int], None]
"""Called with the number of groups examined, and their total."""


class Compression:
    """Compresses the memory of users. Every process with a worker has one, which registers the job."""

    def __init__(
        self,
        database: Database,
        store: CompressionStore,
        undo: CompressionUndo,
        models: ChatModels,
        alike: ClusterFinder,
        jobs: JobQueue,
        rules: CompressionRules,
    ) -> None:
        self._database = database
        self.store = store
        self.undo = undo
        self._models = models
        self._alike = alike
        self.rules = rules
        jobs.task(COMPRESS, can_wait=True)(self._job)

    async def request(self, owner: Owner, *, dry_run: bool = False, job: bool = True) -> StoredRun:
        """Request a run for an owner's memory, by a worker or, without `job`, by the next caller of `carry_out`.

        Raises:
            Conflict: compression is switched off, or a run for the owner is in progress.
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """
        if not self.rules.on:
            raise Conflict("Compression is switched off.")
        async with self._database.tenant(owner.tenant_id, statement_s=UNHURRIED_S) as connection:
            run_id = await self.store.add(connection, owner, reason="request", dry_run=dry_run, job=job)
        if run_id is None:
            raise Conflict("This memory is being compressed already.")
        return await self.run(owner.tenant_id, owner.user_id, run_id)

    async def run(self, tenant_id: UUID, user_id: UUID, run_id: UUID) -> StoredRun:
        """Return the state of a run.

        Raises:
            NotFound: the user has no such run.
            DatabaseUnavailable: the database does not answer.
        """
        found = await self.store.runs(tenant_id, user_id, run_id=run_id)
        if not found:
            raise NotFound(f"There is no run of compression {run_id}.")
        return found[0]

    async def carry_out(self, tenant_id: UUID, run_id: UUID, *, on_step: OnStep | None = None) -> Report | None:
        """Carry out a run; None if there is no longer anything to do.

        Raises:
            Unavailable: the database or the embedding endpoint does not answer; nothing was changed.
        """
        run = await self.store.take(tenant_id, run_id)
        if run is None:
            return None
        report, begun = Report(), time.monotonic()
        try:
            await self._carry_out(run, report, begun, on_step or _nobody)
        except LostRun:
            log.info("a run of compression was taken over", run_id=str(run_id))
            return None
        except DatabaseUnavailable:
            raise
        except Unavailable as error:
            report.problem, report.seconds = error.message, _since(begun)
            await self.store.end(run, "failed", report)
            raise
        log.info(
            "memory compressed", run_id=str(run_id), dry_run=run.dry_run, before=report.episodes_before,
            after=report.episodes_after, consolidated=report.consolidated, failures=len(report.failures),
        )  # fmt: skip
        return report

    async def _carry_out(self, run: Run, report: Report, begun: float, on_step: OnStep) -> None:
        members, report.episodes_before = await self.store.members(run)
        # Texts longer than what a model is shown could not be merged as a whole.
        readable = [member for member in members if len(member.text) <= LONGEST_TEXT]
        spaces = dict.fromkeys(member.space_id for member in readable)
        groups = [
            group
            for space_id in spaces
            for group in await self._alike.groups([m for m in readable if m.space_id == space_id], self.rules)
        ]
        refining = GroupMerger(self._models)
        report.by = "rules" if refining.by_rules else "model"
        report.clusters = len(groups)
        made = await self._refine_all(run, groups, refining, report, begun, on_step)
        report.tokens = refining.tokens
        if not run.dry_run:
            report.seconds = _since(begun)
            await self.store.swap(run, report)
            return
        sources = [member.id for refined in made for member, _ in refined.outcomes]
        report.consolidated, report.superseded = len(made), len(sources)
        report.dropped = [
            {"episode_id": str(member.id), "reason": outcome}
            for refined in made
            for member, outcome in refined.outcomes
            if outcome != "represented"
        ]
        report.episodes_after = report.episodes_before - len(sources) + len(made)
        report.seconds = _since(begun)
        await self.store.end(run, "done", report)

    async def _refine_all(
        self,
        run: Run,
        groups: Sequence[Sequence[Member]],
        refining: GroupMerger,
        report: Report,
        begun: float,
        on_step: OnStep,
    ) -> list[MergedText]:
        made: list[MergedText] = []
        silent = 0
        for number, group in enumerate(groups):
            if _since(begun) > _LONGEST_S or silent >= _MOST_FAILURES:
                report.left_for_later = len(groups) - number
                break
            with authoring():
                try:
                    refined = await refining.refine(group)
                    silent = 0
                except (BadModelOutput, Unavailable) as error:
                    silent += isinstance(error, Unavailable)
                    report.failures.append({"episodes": len(group), "reason": error.message})
                    log.warning("memories stay as they are", run_id=str(run.id), reason=error.message)
                    refined = None
                if refined is not None:
                    made.append(refined)
                    if not run.dry_run:
                        await self.store.stage(run, refined)
            await self.store.keep(run)
            on_step(number + 1, len(groups))
        return made

    async def _job(self, job: RunningJob, *, run_id: UUID, **_: UUID) -> None:
        try:
            await self.carry_out(job.tenant_id, run_id)
        except DatabaseUnavailable:
            raise
        except Unavailable as error:  # the run reports it; the next night tries again
            log.warning("memory is not compressed", run_id=str(run_id), reason=error.message)


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)


def _nobody(_: int, __: int) -> None:
    """Ignore the progress."""
