"""Filing: one model call for everything new that a user has said; its operations are checked and carried out.

After a quiet moment, and at most once a minute, the small model reads what was said since the last filing. The
changes that it wants must rest on words of the user, which `filing/checks.py` checks exactly. All changes of a
call are made in one transaction with the record of what was filed, so nothing is filed twice or lost. If the user
has had memory changed meanwhile, or if there may be more to file, the model is asked about the turns again and
told what is already done. Without a model nothing is filed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from uuid import UUID

import structlog

from services.errors import BadModelOutput, Conflict, InvalidInput, NotFound, Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.chat_models import ChatModels
from services.memory.core.blocks import Owner
from services.memory.filing.answer import FilingOperation
from services.memory.filing.checks import Checked
from services.memory.filing.decision import Decided, dated, decide, turns_of_story
from services.memory.filing.evidence import FilingEvidence
from services.memory.filing.plans import plan_filed
from services.memory.filing.promised import MakePromises
from services.memory.filing.prompt import Batch, Said
from services.memory.filing.store import FilingStore, WaitingTurns, request_of
from services.memory.filing.story import StoryTold
from services.memory.operations import Trigger
from services.memory.planning.planner import ChangePlanner
from services.memory.planning.wording import ended
from services.memory.proposals.settling import Proposals
from services.memory.reading.foreign_words import own_text
from services.memory.removal.hiding import Hiding
from services.memory.waiting import FILE_MEMORY
from services.platform.authorship import authoring
from services.platform.connections import Connection
from services.platform.metrics import MEMORY_FILING_OPERATIONS, MEMORY_FILINGS
from services.platform.setting_values import FilingGrade
from services.text.language import Language
from state.memory import PlannedChange

_MOST_CALLS = 4
"""Maximum number of calls for the same turns, if there is more to file or memory changes in between."""
_GOES_ON = 4
"""Factor by which turns wait longer while their conversation continues, since the next turns see them anyway."""
_MANY, _MANY_IN_PARTS = 16, 8
"""Number of waiting turns that are filed even while the user continues, and that one call covers; the second
number is for models that are asked small questions."""


def longest_wait_s(quiet_s: float, pause_s: float) -> float:
    """Return the maximum seconds that turns wait for filing while the user is quiet."""
    return max(_GOES_ON * quiet_s, pause_s)


log = structlog.get_logger(__name__)
_STORY: dict[Language, str] = {"en": "a game or story ({count} messages)", "zh": "游戏或故事里的话（{count}条）"}


HearComplaint = Callable[[UUID, UUID, str], Awaitable[None]]
"""Stores, for a tenant, that a message finds fault with the answer before it, and in which words."""


@dataclass(frozen=True)
class _Step:
    """An operation to carry out, with the message that it rests on and its plan."""

    operation: FilingOperation
    message: Said
    plan: PlannedChange


@dataclass(frozen=True)
class _Applied:
    """Outcome of a batch."""

    changes: int
    left: Sequence[UUID] = ()
    """Turns that the model has to be asked about again."""


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
        make_promises: MakePromises,
        hear_complaint: HearComplaint,
        *,
        on: bool = True,
        hears_mood: bool = True,
        grade: FilingGrade | None = None,
        quiet_s: float = 30.0,
        pause_s: float = 60.0,
    ) -> None:
        """Take the services that filing uses, and its settings.

        Args:
            on: whether anything is filed.
            hears_mood: whether it is noted how users feel.
            grade: how well the model files; None = not known.
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
        self._make_promises = make_promises
        self._hear_complaint = hear_complaint
        self._on = on
        self._hears_mood = hears_mood
        self._grade = grade
        self._many = _MANY_IN_PARTS if grade == "some" else _MANY
        self._quiet_s = quiet_s
        self._pause_s = pause_s
        jobs.task(FILE_MEMORY)(self._job)

    async def file(self, tenant_id: UUID, user_id: UUID) -> int:
        """File everything of a user that waits, at once; return the number of changes.

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
        if not self._on or self._models.offline or self._grade == "none":
            return None
        return await self._store.waiting(tenant_id, user_id)

    async def _job(self, job: RunningJob, *, user_id: UUID, **_: UUID) -> float | None:
        """Return the seconds until there is something to file again; None if nothing waits."""
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
        is_one = not waiting.others and len({*waiting.turns.values()}) == 1
        quiet_s = 0.0 if count >= self._many else self._quiet_s * (_GOES_ON if is_one else 1)
        since = ((said, quiet_s), (asked, self._pause_s))
        return max(seconds - (now - at).total_seconds() if at else 0.0 for at, seconds in since)

    async def _file(self, waiting: WaitingTurns) -> int:
        """File the oldest turns that wait; return the number of changes."""
        changes = 0
        with authoring():
            for call in range(1, _MOST_CALLS + 1):
                batch = await self._store.batch(waiting, self._many)
                decided = await self._decide(batch)
                applied = await self._apply(batch, decided, is_last=call == _MOST_CALLS)
                changes += applied.changes
                await self._complain(batch, decided, applied)
                MEMORY_FILINGS.labels(decided.by).inc()
                filed = {"turns": len(batch.turn_ids), "changes": applied.changes, "dropped": decided.dropped}
                log.info("memory filed", by=decided.by, **filed)
                if not applied.left:
                    return changes
                # Another worker may have filed the same.
                again = await self._store.waiting(waiting.owner.tenant_id, waiting.owner.user_id)
                if again is None:
                    return changes
                waiting = again
        raise Unavailable("The user's memory is being changed by others.")

    async def _decide(self, batch: Batch) -> Decided:
        """Ask the model about a batch, and check what it answers. Raises `ModelFailed` if the model did not
        answer."""
        if not any(map(own_text, batch.said.values())):
            return _undecided("nothing said", batch)
        shown, evidence = await self._evidence.of(batch)
        try:
            return await decide(self._models, shown, evidence, self._grade)
        except BadModelOutput as error:
            log.warning("nothing is filed", turns=len(batch.turn_ids), reason=error.message)
            return _undecided("model", batch)

    async def _apply(self, batch: Batch, decided: Decided, *, is_last: bool) -> _Applied:
        """Carry out what was decided, all or nothing, except for what has changed meanwhile. With `is_last`, a
        full answer is not continued."""
        owner = batch.owner
        steps, asked = await self._planned(batch, decided, decided.done), list(decided.asked)
        left = set[UUID]()
        async with self._store.database.tenant(owner.tenant_id) as connection:
            await self._hiding.lock(connection, owner)
            last_change, proposals_wait = await self._store.state(owner, connection)
            if last_change != batch.last_change:
                stale = await self._evidence.stale(batch, decided.memories)
                changed = [
                    each for each in (*decided.done, *asked) if stale & {each.operation.memory, each.source}
                ]
                left = {_turn_of(batch, each) for each in changed}
                steps = await self._planned(batch, decided, [each for each in decided.done if each not in changed])
                asked = [each for each in asked if each not in changed]
            if decided.is_full and is_last:
                log.warning("more of the turns may be worth filing", turns=len(batch.turn_ids))
            elif decided.is_full:
                left = set(batch.turn_ids)
            done = list[UUID]()
            for adds, group in groupby(steps, lambda each: each.plan.only_adds):
                carry_out = self._add if adds else self._carry_out
                done += await carry_out(connection, owner, list(group))
            if proposals_wait:
                await self._proposals.questions.waiting(connection, owner)  # closes what is overtaken
            for each in asked:
                await self._ask(connection, batch, decided, each)
            MEMORY_FILING_OPERATIONS.labels("dropped").inc(decided.dropped)
            story = [each for each in decided.story if each not in left]
            if (held := await self._hiding.hold(connection, owner, story, _played(batch, story))) is not None:
                done.append(held)
            promised = [(each, batch.messages[each.source]) for each in decided.promises]
            done += await self._make_promises(connection, owner, promised)
            counts = {"operations": len(done), "asked": len(asked), "dropped": decided.dropped}
            filed = [each for each in batch.turn_ids if each not in left]
            await self._store.record(
                connection,
                batch,
                filed,
                done,
                by=decided.by,
                counts=counts,
                story=story,
                story_in=decided.story_in,
                mood=decided.mood if self._hears_mood else None,
            )
        return _Applied(len(done), sorted(left))

    async def _complain(self, batch: Batch, decided: Decided, applied: _Applied) -> None:
        """Store a complaint about an answer as a thumb down, once the turn with the complaint is filed."""
        key, quote = decided.complaint or ("", "")
        if key and _turn_in(batch, key) not in applied.left:
            await self._hear_complaint(batch.owner.tenant_id, batch.messages[key].id, quote)

    async def _planned(self, batch: Batch, decided: Decided, done: Sequence[Checked]) -> list[_Step]:
        operations = [(dated(each, batch), batch.messages[each.source]) for each in done]
        requests = [(operation, request_of(batch.owner, message)) for operation, message in operations]
        plans = await plan_filed(self._planner, decided.memories, requests)
        return [_Step(*each, plan) for each, plan in zip(operations, plans, strict=True)]

    async def _add(self, connection: Connection, owner: Owner, steps: Sequence[_Step]) -> list[UUID]:
        """Carry out plans that only add; if one fails, the others are still carried out."""
        additions = [(each.plan, request_of(owner, each.message).trigger) for each in steps]
        refused = await self._hiding.add_all(connection, owner, additions)
        for each, why in zip(steps, refused, strict=True):
            _count(each.operation.kind, why)
        return [_id_of(each) for each, why in zip(steps, refused, strict=True) if why is None]

    async def _carry_out(self, connection: Connection, owner: Owner, steps: Sequence[_Step]) -> list[UUID]:
        """Carry out plans one by one; if one fails, the others are still carried out."""
        done = []
        for each in steps:
            if not each.plan.changes:
                continue
            try:
                async with connection.transaction():
                    trigger = request_of(owner, each.message).trigger
                    await self._hiding.commit(connection, owner, each.plan, trigger)
            except (InvalidInput, Conflict) as error:
                _count(each.operation.kind, error)
                continue
            _count(each.operation.kind)
            done.append(_id_of(each))
        return done

    async def _ask(self, connection: Connection, batch: Batch, decided: Decided, asked: Checked) -> None:
        """Store a change that waits for the user's consent."""
        request, operation = request_of(batch.owner, batch.last), asked.operation
        memory = decided.memories.get(operation.memory)
        text, gone = (memory.text, memory.id) if memory else ("", "")
        new = ended(text, dated(asked, batch).date) if operation.kind == "end" else operation.text
        if new:
            await self._proposals.add_in(connection, request, "remember", new, text, gone)
        else:
            await self._proposals.add_in(connection, request, "forget", text, memory=gone)
        MEMORY_FILING_OPERATIONS.labels("asked").inc()


def _undecided(by: str, batch: Batch) -> Decided:
    """Return a decision to file nothing; a story that continues is still noted."""
    story, story_in = turns_of_story(batch, StoryTold(goes_on=batch.story_in is not None))
    return Decided(by, story=story, story_in=story_in)


def _played(batch: Batch, story: Sequence[UUID]) -> tuple[Trigger, str]:
    """Return the reason for holding turns of a story, and the text that tells the user."""
    said = [each for each in batch.messages.values() if each.turn_id in story and each.role == "user"]
    trigger = request_of(batch.owner, said[-1] if said else batch.last).trigger
    return trigger, _STORY[batch.language].format(count=len(said))


def _turn_of(batch: Batch, checked: Checked) -> UUID:
    return _turn_in(batch, checked.source)


def _turn_in(batch: Batch, key: str) -> UUID:
    """Return the turn of a message, by the message's short id; the last turn if there is no id."""
    return (batch.messages[key].turn_id if key else None) or batch.turn_ids[-1]


def _id_of(step: _Step) -> UUID:
    return UUID(str(step.plan.change["operation_id"]))


def _count(kind: str, refused: Exception | None = None) -> None:
    if refused is None:
        MEMORY_FILING_OPERATIONS.labels(kind).inc()
        return
    log.warning("an operation was refused", reason=type(refused).__name__)  # its words may be the user's
    MEMORY_FILING_OPERATIONS.labels("refused").inc()
