"""The memory agent: after a completed turn it files what is worth remembering of the exchange.

It reads what the two said, and nothing that a prompt showed beside it. What it decides is stored before any of it
is done, so that a job that runs again does the rest, and nothing twice.
"""

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

import structlog
from langchain_core.messages import ToolCall, ToolMessage

from services.errors import NotFound
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.agent_deciding import WRITTEN, Deciding
from services.memory.agent_plan import CoreChange, NewMemory, Plan, Planned, read, stored, texts_of
from services.memory.agent_store import AgentStore, Exchange
from services.memory.archive import Archive
from services.memory.episodes import EpisodeStore
from services.memory.gate import Signal, what_fires
from services.memory.operations import Trigger
from services.memory.schedule import REMEMBER
from services.memory.superseded import contradicted
from services.platform.metrics import MEMORY_AGENT_OPERATIONS, MEMORY_PLANS, MEMORY_SIGNALS
from state.context import TurnContext

_TRIES = 2
"""A tool answers an error alike for what it refuses and for what did not answer it."""

log = structlog.get_logger(__name__)


class RunTools(Protocol):
    """Runs tool calls on behalf of a turn; a failure is a message with an error."""

    async def __call__(self, calls: Sequence[ToolCall], context: TurnContext) -> Sequence[ToolMessage]: ...


class MemoryAgent:
    """Files what is worth remembering. Every process with a worker has one: it registers the job."""

    def __init__(
        self,
        store: AgentStore,
        deciding: Deciding,
        jobs: JobQueue,
        run_tools: RunTools,
        *,
        episodes: EpisodeStore,
        archive: Archive | None,
        on: bool = True,
    ) -> None:
        """Take what it works with; `archive` None = episodes are switched off."""
        self._store = store
        self._deciding = deciding
        self._run_tools = run_tools
        self._episodes = episodes
        self._archive = archive
        self._on = on
        jobs.task(REMEMBER)(self._job)

    async def remember(self, tenant_id: UUID, turn_id: UUID) -> int:
        """File what is worth remembering of a turn, once; return how many operations that took.

        Where no model answers as it should, rules alone decide.

        Raises:
            DatabaseUnavailable: the database does not answer; called again, it goes on where it was.
        """
        exchange = await self._store.exchange(tenant_id, turn_id) if self._on else None
        signals = what_fires(exchange.said, exchange.answer) if exchange else ()
        if exchange is None or not signals:
            return 0
        noted = await self._store.noted(exchange)
        if noted.plan_id is not None and noted.plan is None:
            return 0
        if noted.plan_id is not None and noted.plan is not None:
            plan_id, plan = noted.plan_id, read(noted.plan)
        else:
            plan, by = await self._deciding.decide(exchange)
            trigger = _trigger(exchange, signals)
            plan_id = await self._store.note_plan(exchange, stored(plan), by, trigger)
            MEMORY_PLANS.labels(by).inc()
            for signal in signals:
                MEMORY_SIGNALS.labels(signal).inc()
        if plan:
            await self._carry_out(exchange, signals, plan)
            await self._store.finish(exchange, plan_id)
        log.info("memory filed", turn_id=str(turn_id), signals=signals, operations=len(plan))
        return len(plan)

    async def _job(self, job: RunningJob, *, turn_id: UUID, **_: UUID) -> None:
        try:
            await self.remember(job.tenant_id, turn_id)
        except NotFound:  # the user was erased meanwhile
            log.info("nothing to remember any more", turn_id=str(turn_id))

    async def _carry_out(self, exchange: Exchange, signals: Sequence[Signal], plan: Plan) -> None:
        for number, planned in enumerate(plan, 1):
            await self._do(exchange, signals, str(number), planned)
        if self._archive:
            await self._retire_contradicted(exchange, signals, plan, self._archive)

    async def _do(self, exchange: Exchange, signals: Sequence[Signal], number: str, planned: Planned) -> None:
        if isinstance(planned, CoreChange):
            arguments: dict[str, Any] = {"section": planned.section, "content": planned.patch}
            await self._call("core_memory_update", arguments, exchange, signals, number)
        elif isinstance(planned, NewMemory):
            arguments = planned.model_dump(include={"content", "episode_type", "importance"})
            await self._call("archival_memory_insert", arguments, exchange, signals, number)
            new = (await self._store.noted(exchange)).calls.get(number)
            if planned.replaces and new:
                await self._supersede(planned.replaces, new, exchange, signals, number)
        elif exchange.episode_id:
            await self._supersede(planned.episode_id, exchange.episode_id, exchange, signals, number)

    async def _call(
        self, name: str, arguments: dict[str, Any], exchange: Exchange, signals: Sequence[Signal], number: str
    ) -> None:
        """Run a tool as the model would, unless that was done before."""
        context = _context(exchange, signals)
        for tries_left in reversed(range(_TRIES)):
            # When the database is away this says so, and the job is tried again as a whole.
            if number in (await self._store.noted(exchange)).calls:
                return
            (result,) = await self._run_tools([ToolCall(name=name, args=arguments, id=number)], context)
            if result.status == "success":
                MEMORY_AGENT_OPERATIONS.labels(name).inc()
                return
            if not tries_left:
                MEMORY_AGENT_OPERATIONS.labels("refused").inc()
                log.warning("an operation was refused", turn_id=str(exchange.turn_id), tool=name)

    async def _supersede(
        self, old: UUID, by: UUID, exchange: Exchange, signals: Sequence[Signal], number: str
    ) -> None:
        trigger = _trigger(exchange, signals, call=number)
        if self._archive and await self._archive.supersede(exchange.owner, old, by, trigger):
            MEMORY_AGENT_OPERATIONS.labels("episode_supersede").inc()

    async def _retire_contradicted(
        self, exchange: Exchange, signals: Sequence[Signal], plan: Plan, archive: Archive
    ) -> None:
        """Have written memories no longer come up that what was filed now contradicts."""
        new = [text for planned in plan for text in _texts(planned)]
        calls = (await self._store.noted(exchange)).calls
        ours = [episode for episode in calls.values() if episode]
        by = ours[0] if ours else exchange.episode_id
        if by is None:
            return
        for old in await self._episodes.written(exchange.owner, limit=WRITTEN):
            if old.id not in ours and old.said_at < exchange.at and contradicted(old.content, new):
                await self._supersede(old.id, by, exchange, signals, str(len(plan) + 1))


def _texts(planned: Planned) -> list[str]:
    if isinstance(planned, CoreChange):
        return texts_of(planned.patch)
    return [planned.content] if isinstance(planned, NewMemory) else []


def _context(exchange: Exchange, signals: Sequence[Signal]) -> TurnContext:
    return TurnContext(
        tenant_id=str(exchange.tenant_id),
        user_id=str(exchange.user_id),
        conversation_id=str(exchange.conversation_id),
        expert_id=str(exchange.expert_id),
        user_message_id=str(exchange.message_id),
        turn_id=str(exchange.turn_id),
        timezone=exchange.timezone,
        actor="memory_agent",
        answer_message_id=str(exchange.answer_message_id),
        signals=tuple(signals),
    )


def _trigger(exchange: Exchange, signals: Sequence[Signal], call: str | None = None) -> Trigger:
    details: dict[str, Any] = {"signals": list(signals)} | ({"call": call} if call else {})
    return Trigger(
        "memory_agent",
        exchange.message_id,
        exchange.conversation_id,
        exchange.turn_id,
        exchange.expert_id,
        details,
    )
