"""The memory agent: files what is worth remembering of completed turns.

It reads only what was said, nothing else that a prompt showed. Its decisions are stored before they are carried
out, so that a repeated job does the rest, and nothing twice."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from services.errors import InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.agent.consent import Consent
from services.memory.agent.decisions import WRITTEN, DecisionMaker
from services.memory.agent.plan import (
    CoreChange,
    Forgetting,
    NewMemory,
    Plan,
    Planned,
    dump,
    load,
    texts_of,
)
from services.memory.agent.store import AgentStore, ChangedTurn, Exchange
from services.memory.agent.triggers import REMEMBER, is_worth_filing
from services.memory.archive import Archive
from services.memory.commands.effects import taken_back
from services.memory.commands.reading import ResolutionRequest
from services.memory.commands.resolution import Resolution
from services.memory.core import CoreMemory
from services.memory.episodes.episode import NewEpisode
from services.memory.episodes.store import EpisodeStore
from services.memory.items import ItemChange
from services.memory.operations import Trigger
from services.memory.recall.superseded import contradicted
from services.memory.removal.hiding import Retraction
from services.platform.authorship import authoring
from services.platform.metrics import MEMORY_AGENT_OPERATIONS, MEMORY_PLANS
from services.platform.threads import beside_the_loop
from services.text.language import language_of
from services.text.tokenizer import informative_terms
from state.memory import Recognised

_MOST_TURNS = 8
"""Turns that one call covers."""
_HELD_S = 1.0
"""Seconds to wait for the decision whether a turn holds a memory command."""
_LONGEST_HELD = timedelta(minutes=10)
"""Time after which a turn is processed even without a decision."""
_IN_A_STEP = 2_000
"""Characters of a message that are split into terms in one step of the event loop."""

log = structlog.get_logger(__name__)


class MemoryAgent:
    """Files what is worth remembering. Every process with a worker has one, which registers the job."""

    def __init__(
        self,
        store: AgentStore,
        deciding: DecisionMaker,
        jobs: JobQueue,
        *,
        consent: Consent,
        episodes: EpisodeStore,
        core_memory: CoreMemory | None,
        archive: Archive | None,
        resolution: Resolution,
        retraction: Retraction,
        on: bool = True,
        pause_s: float = 60.0,
    ) -> None:
        """Take what it works with.

        Args:
            store: reads turns, keeps plans.
            deciding: decides what to file.
            jobs: where the job is registered.
            consent: takes out of plans what waits for the user.
            episodes: reads written memories.
            core_memory: None = switched off.
            archive: None = episodes are switched off.
            resolution: finds what to forget.
            retraction: retracts it.
            on: whether anything is filed.
            pause_s: Seconds between two calls of the model about the same user; turns in between share one.
        """
        self._store = store
        self._deciding = deciding
        self._jobs = jobs
        self._consent = consent
        self._episodes = episodes
        self._core_memory = core_memory
        self._archive = archive
        self._resolution = resolution
        self._retraction = retraction
        self._on = on
        self._pause = timedelta(seconds=pause_s)
        jobs.task(REMEMBER)(self._job)

    async def remember(self, tenant_id: UUID, turn_id: UUID) -> int:
        """File what is worth remembering of a turn, and of others that are waiting; return the number of
        operations.

        Nothing is filed twice. If no model gives a usable answer, rules decide.

        Raises:
            DatabaseUnavailable: the database does not answer; called again, it continues where it stopped.
        """
        if not self._on:
            return 0
        exchange = await self._store.exchange(tenant_id, turn_id)
        with authoring():
            if exchange is not None and _is_looked_at(exchange):
                return await self._remember(exchange)
            if changed := await self._store.changed(tenant_id, turn_id):
                await self._take_back(changed)
            return 0

    async def _remember(self, exchange: Exchange) -> int:
        tenant_id, turn_id = exchange.tenant_id, exchange.turn_id
        noted = await self._store.noted(exchange)
        if noted.plan_id is not None and noted.plan is None:
            return await self._file_again(exchange)
        if noted.plan_id is not None and noted.plan is not None:
            plan_id, plan = noted.plan_id, load(noted.plan)
            if await self._commanded_since(exchange, noted.planned_at):
                plan = []  # it may contain what was forgotten meanwhile
                await self._store.finish(exchange, plan_id)
        else:
            before = await self._store.last_command(exchange)
            # Rules cost nothing, so each turn is filed by itself: what is filed names the message that it is from.
            waiting = [] if self._deciding.offline else await self._store.waiting(exchange, limit=_MOST_TURNS)
            others = [each for each in waiting if _is_looked_at(each)]
            plan, by = await self._deciding.decide([exchange, *others])
            if await self._commanded_since(exchange, before):
                return await self.remember(tenant_id, turn_id)
            plan = await self._consent.given([exchange, *others], plan, _trigger(exchange))
            plan_id = await self._store.note_plan(exchange, others, dump(plan), by, _trigger)
            MEMORY_PLANS.labels(by).inc()
        if plan:
            await self._carry_out(exchange, plan)
            await self._store.finish(exchange, plan_id)
        log.info("memory filed", turn_id=str(turn_id), operations=len(plan))
        return len(plan)

    async def _file_again(self, exchange: Exchange) -> int:
        """File a turn again if a command changed what it said while that was being filed."""
        changed = await self._store.changed(exchange.tenant_id, exchange.turn_id)
        if changed is None or not await self._outdated(changed):
            return 0
        plan, by = await self._deciding.decide([exchange])
        plan = await self._consent.given([exchange], plan, _trigger(exchange))
        await self._carry_out(exchange, plan, of=f"{changed.command_id}:")
        await self._take_back(changed)
        log.info("memory filed again", turn_id=str(exchange.turn_id), operations=len(plan), by=by)
        return len(plan)

    async def _outdated(self, changed: ChangedTurn) -> list[ItemChange]:
        """Removals of the items that were filed from what a message does not say any more."""
        if self._core_memory is None:
            return []
        core = await self._core_memory.known(changed.owner)
        found = [
            item
            for section, old, new in await self._store.filed(changed)
            for item in taken_back(section, old or {}, new or {}, core.get(section, {}))
        ]
        gone = await beside_the_loop(
            lambda: informative_terms(changed.said) - informative_terms(changed.left),
            characters=len(changed.said) + len(changed.left),
            most=_IN_A_STEP,
        )
        return [
            ItemChange(**item) for item in found if not changed.left or gone & informative_terms(str(item["old"]))
        ]

    async def _take_back(self, changed: ChangedTurn) -> None:
        """Remove what was filed from what a message does not say any more."""
        trigger = Trigger(
            "memory_agent", changed.message_id, changed.conversation_id, changed.turn_id, changed.expert_id
        )
        outdated = await self._outdated(changed)
        async with self._store.transaction(changed) as connection:
            if outdated and self._core_memory is not None:
                await self._core_memory.change_items(changed.owner, outdated, trigger, connection=connection)
            await self._retraction.withdraw_episodes(
                connection,
                {
                    "tenant_id": changed.tenant_id,
                    "user_id": changed.user_id,
                    "operation_id": changed.command_id,
                    "message_ids": [changed.message_id],
                    "episode_ids": [],
                },
            )

    async def _commanded_since(self, exchange: Exchange, at: datetime | None) -> bool:
        """Whether the user had memory changed since: earlier decisions may contain what was removed."""
        last = await self._store.last_command(exchange)
        return last is not None and (at is None or last > at)

    async def _job(self, job: RunningJob, *, turn_id: UUID, **_: UUID) -> None:
        try:
            if not await self._is_put_off(job, turn_id):
                await self.remember(job.tenant_id, turn_id)
        except NotFound:  # the user was erased meanwhile
            log.info("nothing to remember any more", turn_id=str(turn_id))

    async def _is_put_off(self, job: RunningJob, turn_id: UUID) -> bool:
        """Requeue the job if the turn is held, or the model was just asked about the user; return whether it was.

        A crash in between leaves two jobs for the turn, and the second finds nothing to do.
        """
        exchange = await self._store.exchange(job.tenant_id, turn_id) if self._on else None
        if exchange is None or (await self._store.noted(exchange)).plan_id is not None:
            return False
        now = datetime.now(UTC)
        last = None if self._deciding.offline else await self._store.last_call(exchange)
        wait = (last + self._pause - now).total_seconds() if last else 0.0
        if exchange.is_held and now - exchange.at < _LONGEST_HELD:
            wait = max(wait, _HELD_S)
        if wait <= 0:
            return False
        async with job.transaction() as connection:
            await self._jobs.defer(
                connection,
                REMEMBER,
                tenant_id=job.tenant_id,
                lock=f"{REMEMBER}:{exchange.user_id}",
                delay_s=wait,
                turn_id=turn_id,
            )
        return True

    async def _carry_out(self, exchange: Exchange, plan: Plan, *, of: str = "") -> None:
        """Do what is planned and not done yet; `of` tells the plans of a turn apart."""
        for number, planned in enumerate(plan, 1):
            done = (await self._store.noted(exchange)).calls
            if f"{of}{number}" not in done:
                await self._do(exchange, f"{of}{number}", planned)
        if self._archive:
            await self._retire_contradicted(exchange, plan, self._archive)

    async def _do(self, exchange: Exchange, number: str, planned: Planned) -> None:
        if isinstance(planned, CoreChange):
            await self._change_core(exchange, number, planned)
        elif isinstance(planned, NewMemory):
            new = await self._write(exchange, number, planned)
            if planned.replaces and new:
                await self._supersede(planned.replaces, new, exchange, number)
        elif isinstance(planned, Forgetting):
            await self._forget(exchange, number, planned)
        elif exchange.episode_id:
            await self._supersede(planned.episode_id, exchange.episode_id, exchange, number)

    async def _forget(self, exchange: Exchange, number: str, forgetting: Forgetting) -> None:
        """Retract what the user asked to forget; repeating it finds nothing more."""
        language = language_of([exchange.said])
        asking = ResolutionRequest(
            exchange.owner, exchange.conversation_id, exchange.message_id, exchange.said, language, Recognised()
        )
        planned = await self._resolution.named(asking, "forget", forgetting.target)
        async with self._store.transaction(exchange) as connection:
            operation = await self._retraction.commit(
                connection, exchange.owner, planned, _trigger(exchange, call=number)
            )
        if operation is None:
            self._refused(exchange, "memory holds nothing of what is to be forgotten")
        else:
            MEMORY_AGENT_OPERATIONS.labels("forget").inc()

    async def _change_core(self, exchange: Exchange, number: str, change: CoreChange) -> None:
        if self._core_memory is None:
            return
        trigger = _trigger(exchange, call=number)
        for made_room in (False, True):
            try:
                changed = await self._core_memory.change_items(exchange.owner, [change.as_item_change()], trigger)
            except InvalidInput as error:
                if error.field != "content" or made_room or not await self._make_room(exchange, change):
                    self._refused(exchange, f"{error.field} {error.message}")
                    return
            else:
                if changed.unmatched and change.action == "replace" and exchange.space_id is not None:
                    # What it replaces is shared by all spaces; in this space the new value is added beside it.
                    change = change.model_copy(update={"action": "add", "old": None})
                    await self._change_core(exchange, number, change)
                elif changed.unmatched:
                    self._refused(exchange, "it names no item, or several")
                else:
                    MEMORY_AGENT_OPERATIONS.labels(f"core_memory_{change.action}").inc()
                return

    async def _make_room(self, exchange: Exchange, change: CoreChange) -> bool:
        """Drop the least useful items of a full section; return whether there were any."""
        assert self._core_memory is not None  # noqa: S101 — only called with it
        content = (await self._deciding.core(exchange)).get(change.section, {})
        dropped = self._deciding.least_useful(change.section, content)
        if not dropped:
            return False
        log.warning(
            "core memory is full: items were dropped",
            turn_id=str(exchange.turn_id),
            section=change.section,
            fields=[each.field for each in dropped],
        )
        items = [each.as_item_change() for each in dropped]
        await self._core_memory.change_items(exchange.owner, items, _trigger(exchange, reason="section full"))
        return True

    async def _write(self, exchange: Exchange, number: str, memory: NewMemory) -> UUID | None:
        if self._archive is None:
            return None
        episode = NewEpisode(
            content=memory.content,
            episode_type=memory.episode_type,
            importance=memory.importance,
            origin="derived",
            source_message_ids=memory.sources or [exchange.message_id, exchange.answer_message_id],
            conversation_id=exchange.conversation_id,
        )
        try:
            new = await self._archive.insert(exchange.owner, episode, _trigger(exchange, call=number))
        except InvalidInput as error:
            self._refused(exchange, f"{error.field} {error.message}")
            return None
        MEMORY_AGENT_OPERATIONS.labels("episode_insert").inc()
        return new

    def _refused(self, exchange: Exchange, reason: str) -> None:
        MEMORY_AGENT_OPERATIONS.labels("refused").inc()
        log.warning("an operation was refused", turn_id=str(exchange.turn_id), reason=reason)

    async def _supersede(self, old: UUID, by: UUID, exchange: Exchange, number: str) -> None:
        trigger = _trigger(exchange, call=number)
        if self._archive and await self._archive.supersede(exchange.owner, old, by, trigger):
            MEMORY_AGENT_OPERATIONS.labels("episode_supersede").inc()

    async def _retire_contradicted(self, exchange: Exchange, plan: Plan, archive: Archive) -> None:
        """Retire written memories that the newly filed ones contradict."""
        new = [text for planned in plan for text in _texts(planned)]
        calls = (await self._store.noted(exchange)).calls
        ours = [episode for episode in calls.values() if episode]
        by = ours[0] if ours else exchange.episode_id
        if by is None:
            return
        for old in await self._episodes.written(exchange.owner, limit=WRITTEN, visible=False):
            if old.id not in ours and old.said_at < exchange.at and contradicted(old.content, new):
                await self._supersede(old.id, by, exchange, str(len(plan) + 1))


def _is_looked_at(exchange: Exchange) -> bool:
    return is_worth_filing(exchange.said, exchange.answer)


def _texts(planned: Planned) -> list[str]:
    if isinstance(planned, CoreChange):
        return texts_of(planned.value)
    return [planned.content] if isinstance(planned, NewMemory) else []


def _trigger(exchange: Exchange, **details: Any) -> Trigger:
    return Trigger(
        "memory_agent",
        exchange.message_id,
        exchange.conversation_id,
        exchange.turn_id,
        exchange.expert_id,
        exchange.space_id,
        details,
    )
