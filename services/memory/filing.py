"""Filing: one model call for all that a user has newly said, whose operations are checked and then carried out.

A quiet moment after a user's last message, and at most once a minute, the small model reads what was said since
the last filing. What it wants changed must rest on words of the user, which is checked exactly
(`filing_checks.py`). All changes of a call are made in one transaction with the record of what was filed: nothing
is filed twice, or lost. If the user has had memory changed meanwhile, the model is asked again. Without a model
nothing is filed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from uuid import UUID

import structlog

from services.errors import BadModelOutput, Conflict, InvalidInput, NotFound, Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for
from services.memory.blocks import Owner
from services.memory.filing_checks import FilingEvidence, checked
from services.memory.filing_prompt import Answer, Batch, FilingOperation, Said, filing_of_answer, filing_prompt
from services.memory.filing_store import FILE_MEMORY, FilingStore, WaitingTurns, request_of
from services.memory.model import Memory
from services.memory.planning.planner import ChangePlanner
from services.memory.proposals import Proposals
from services.memory.quotes import own_text
from services.memory.removal.hiding import Hiding
from services.platform.authorship import authoring
from services.platform.connections import Connection
from services.platform.metrics import MEMORY_FILING_OPERATIONS, MEMORY_FILINGS
from services.platform.patience import beside_the_loop
from state.memory import PlannedChange

_LONG = 2_000
"""Characters of a batch that are compared in one step of the event loop."""
_TRIES = 3
"""Times that a model is asked about a batch, if the user has memory changed meanwhile."""
_ALONE = 4
"""Times as long as usual that a turn waits by itself: most are followed by another."""
_MANY = 8
"""Waiting turns that are filed although the user goes on."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Decided:
    """What is to be done about a batch."""

    by: str
    done: Sequence[tuple[FilingOperation, Said]] = ()
    """With the message that each rests on."""
    asked: Sequence[FilingOperation] = ()
    dropped: int = 0
    memories: Mapping[str, Memory] = field(default_factory=dict)
    in_story: bool = False


_Planned = tuple[tuple[FilingOperation, Said], PlannedChange]


class Filing:
    """Files what users say. Every process with a worker has one, which registers the job."""

    def __init__(
        self,
        store: FilingStore,
        evidence: FilingEvidence,
        models: ChatModels,
        planner: ChangePlanner,
        hiding: Hiding,
        proposals: Proposals,
        jobs: JobQueue,
        *,
        on: bool = True,
        quiet_s: float = 30.0,
        pause_s: float = 60.0,
    ) -> None:
        """Take what it works with.

        Args:
            on: whether anything is filed.
            quiet_s: seconds after a user's last message.
            pause_s: seconds between two calls about the same user.
        """
        self._store = store
        self._evidence = evidence
        self._models = models
        self._planner = planner
        self._hiding = hiding
        self._proposals = proposals
        self._jobs = jobs
        self._on = on
        self._quiet_s = quiet_s
        self._pause_s = pause_s
        jobs.task(FILE_MEMORY)(self._job)

    async def file(self, tenant_id: UUID, user_id: UUID) -> int:
        """File everything that waits of a user, at once; return the number of changes.

        Raises:
            DatabaseUnavailable: the database does not answer; called again, it continues where it stopped.
            ModelFailed: the model did not answer.
            Unavailable: the user goes on changing memory.
        """
        changes = 0
        while (waiting := await self._waiting(tenant_id, user_id)) is not None:
            changes += await self._file(waiting)
        return changes

    async def _waiting(self, tenant_id: UUID, user_id: UUID) -> WaitingTurns | None:
        if not self._on or self._models.offline:
            return None
        return await self._store.waiting(tenant_id, user_id)

    async def _job(self, job: RunningJob, *, user_id: UUID, **_: UUID) -> float | None:
        """Return the seconds until there is something to file again; None = there is nothing."""
        waiting, last = await asyncio.gather(
            self._waiting(job.tenant_id, user_id), self._store.last(job.tenant_id, user_id)
        )
        if waiting is None:
            return None
        if (wait_s := self._wait_s(waiting, *last)) > 0:
            return wait_s
        try:
            await self._file(waiting)
        except NotFound:  # the user was erased meanwhile
            log.info("nothing to file any more")
            return None
        return None if await self._waiting(job.tenant_id, user_id) is None else self._pause_s

    def _wait_s(self, waiting: WaitingTurns, said: datetime | None, asked: datetime | None) -> float:
        """Return the seconds until the turns may be filed.

        Args:
            said: when the user last said something.
            asked: when a model was last asked about them.
        """
        now = datetime.now(UTC)
        count = len(waiting.turns) + waiting.others
        quiet_s = 0.0 if count >= _MANY else self._quiet_s * (_ALONE if count == 1 else 1)
        since = ((said, quiet_s), (asked, self._pause_s))
        return max(seconds - (now - at).total_seconds() if at else 0.0 for at, seconds in since)

    async def _file(self, waiting: WaitingTurns) -> int:
        """File the oldest turns that wait; return the number of changes."""
        with authoring():
            for _ in range(_TRIES):
                batch = await self._store.batch(waiting)
                decided = await self._decide(batch)
                changes = await self._apply(batch, decided)
                if changes is not None:
                    MEMORY_FILINGS.labels(decided.by).inc()
                    log.info("memory filed", turns=len(batch.turn_ids), changes=changes, by=decided.by)
                    return changes
                # Another worker may have filed the same.
                again = await self._store.waiting(waiting.owner.tenant_id, waiting.owner.user_id)
                if again is None:
                    return 0
                waiting = again
        raise Unavailable("The user's memory is being changed by others.")

    async def _decide(self, batch: Batch) -> _Decided:
        """Ask the model about a batch, and check what it answers.

        Raises:
            ModelFailed: the model did not answer.
        """
        if not any(map(own_text, batch.said.values())):
            return _Decided("nothing said")
        shown, evidence = await self._evidence.of(batch)
        try:
            answer = await ask_for(
                self._models,
                filing_prompt(shown),
                lambda text: filing_of_answer(text, shown.memories, shown.said),
                schema=Answer,
                purpose="memory_filing",
            )
        except BadModelOutput as error:
            log.warning("nothing is filed", turns=len(batch.turn_ids), reason=error.message)
            return _Decided("model", in_story=batch.in_story)
        check = partial(checked, answer.operations, evidence)
        found = await beside_the_loop(check, characters=sum(map(len, batch.said.values())), most=_LONG)
        done = [
            (operation, batch.messages[source])
            for operation, verdict, source in found
            if verdict == "do" and source
        ]
        asked = [operation for operation, verdict, _ in found if verdict == "ask"]
        dropped = len(found) - len(done) - len(asked)
        return _Decided("model", done, asked, dropped, shown.memories, answer.in_story)

    async def _apply(self, batch: Batch, decided: _Decided) -> int | None:
        """Carry out what was decided, all or nothing; return the number of changes, None if memory has changed."""
        owner = batch.owner
        operations = [(operation, request_of(owner, message)) for operation, message in decided.done]
        planned = await self._planner.plan_filed(decided.memories, operations)
        changes = 0
        async with self._store.database.tenant(owner.tenant_id) as connection:
            await self._hiding.lock(connection, owner)
            last_change, proposals_wait = await self._store.state(owner, connection)
            if last_change != batch.last_change:
                return None
            for adds, group in groupby(zip(decided.done, planned, strict=True), lambda each: each[1].only_adds):
                carry_out = self._add if adds else self._carry_out
                changes += await carry_out(connection, owner, list(group))
            if proposals_wait:
                await self._proposals.questions.waiting(connection, owner)  # closes what is overtaken
            for operation in decided.asked:
                await self._ask(connection, batch, operation, decided.memories.get(operation.memory))
            MEMORY_FILING_OPERATIONS.labels("dropped").inc(decided.dropped)
            counts = {"operations": changes, "asked": len(decided.asked), "dropped": decided.dropped}
            await self._store.record(connection, batch, by=decided.by, counts=counts, in_story=decided.in_story)
        return changes

    async def _add(self, connection: Connection, owner: Owner, planned: Sequence[_Planned]) -> int:
        """Carry out plans that only add; whatever is wrong with one, the others go on."""
        additions = [(plan, request_of(owner, message).trigger) for (_, message), plan in planned]
        refused = await self._hiding.add_all(connection, owner, additions)
        for ((operation, _), _), why in zip(planned, refused, strict=True):
            _count(operation.kind, why)
        return refused.count(None)

    async def _carry_out(self, connection: Connection, owner: Owner, planned: Sequence[_Planned]) -> int:
        """Carry out plans one by one; whatever is wrong with one, the others go on."""
        changes = 0
        for (operation, message), plan in planned:
            if not plan.changes:
                continue
            try:
                async with connection.transaction():
                    trigger = request_of(owner, message).trigger
                    await self._hiding.commit(connection, owner, plan, trigger)
            except (InvalidInput, Conflict) as error:
                _count(operation.kind, error)
                continue
            _count(operation.kind)
            changes += 1
        return changes

    async def _ask(
        self, connection: Connection, batch: Batch, operation: FilingOperation, memory: Memory | None
    ) -> None:
        """Let a change wait for the user."""
        request = request_of(batch.owner, batch.last)
        text, gone = (memory.text, memory.id) if memory else ("", "")
        if operation.text:
            await self._proposals.add_in(connection, request, "remember", operation.text, text, gone)
        else:
            await self._proposals.add_in(connection, request, "forget", text, memory=gone)
        MEMORY_FILING_OPERATIONS.labels("asked").inc()


def _count(kind: str, refused: Exception | None = None) -> None:
    if refused is None:
        MEMORY_FILING_OPERATIONS.labels(kind).inc()
        return
    log.warning("an operation was refused", reason=type(refused).__name__)  # its words may be the user's
    MEMORY_FILING_OPERATIONS.labels("refused").inc()
