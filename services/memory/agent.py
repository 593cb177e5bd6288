"""The memory agent: after a completed turn it files what is worth remembering of the exchange.

It reads what the two said, and nothing that a prompt showed beside it. What it decides is stored before any of it
is done, so that a job that runs again does the rest, and nothing twice.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

import structlog
from langchain_core.messages import ToolCall, ToolMessage

from services.errors import BadModelOutput, NotFound, Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.asking import ask_for
from services.llm.chat_models import ChatModels
from services.memory import agent_prompts
from services.memory.agent_plan import (
    CoreChange,
    Near,
    NewMemory,
    Plan,
    Planned,
    Retirement,
    plan_of_answer,
    plan_of_findings,
    read,
    stored,
    texts_of,
    without,
)
from services.memory.agent_rules import findings
from services.memory.agent_store import AgentStore, Exchange
from services.memory.archive import Archive
from services.memory.contradictions import claim_of, normalised
from services.memory.core import CoreMemory
from services.memory.duplicates import say_the_same
from services.memory.episodes import EpisodeStore
from services.memory.gate import Signal, what_fires
from services.memory.index import Scope
from services.memory.operations import Trigger
from services.memory.schedule import REMEMBER
from services.memory.superseded import contradicted
from services.memory.terms import informative_terms, terms
from services.platform.metrics import MEMORY_AGENT_OPERATIONS, MEMORY_PLANS, MEMORY_SIGNALS
from state.context import TurnContext

_NEAREST = 8
_LONGEST_QUERY = 500
_WRITTEN = 200
"""The newest written memories, beside which a new one is looked at."""
_TRIES = 2
"""A tool answers an error alike for what it refuses and for what did not answer it."""

log = structlog.get_logger(__name__)

Content = Mapping[str, Mapping[str, Any]]
"""Of each section of core memory."""


class RunTools(Protocol):
    """Runs tool calls on behalf of a turn; a failure is a message with an error."""

    async def __call__(self, calls: Sequence[ToolCall], context: TurnContext) -> Sequence[ToolMessage]: ...


class MemoryAgent:
    """Files what is worth remembering. Every process with a worker has one: it registers the job."""

    def __init__(
        self,
        store: AgentStore,
        models: ChatModels,
        jobs: JobQueue,
        run_tools: RunTools,
        *,
        episodes: EpisodeStore,
        core_memory: CoreMemory | None,
        archive: Archive | None,
        on: bool = True,
    ) -> None:
        """Take what it works with; None = core memory, or episodes, are switched off."""
        self._store = store
        self._models = models
        self._run_tools = run_tools
        self._episodes = episodes
        self._core_memory = core_memory
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
            plan, by = await self._decide(exchange)
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

    async def _decide(self, exchange: Exchange) -> tuple[Plan, str]:
        core = await self._core(exchange)
        written = await self._written(exchange)
        plan, by = None, "rules"
        if not self._models.offline:
            nearest = await self._nearest(exchange)
            plan = await self._ask(exchange, core, nearest)
            by = "model"
        if plan is None:
            human = core.get("human", {})
            plan = plan_of_findings(findings(exchange.said), human, core=self._core_memory is not None)
            by = "rules"
        return self._worth_it(plan, exchange, core, written), by

    async def _ask(self, exchange: Exchange, core: Content, nearest: Sequence[Near]) -> Plan | None:
        asked = agent_prompts.about(exchange.said, exchange.answer, core, nearest)
        try:
            return await ask_for(self._models, asked, lambda text: plan_of_answer(text, nearest))
        except (BadModelOutput, Unavailable) as error:
            log.warning("the memory agent goes by rules", turn_id=str(exchange.turn_id), reason=error.message)
            return None

    def _worth_it(self, plan: Plan, exchange: Exchange, core: Content, written: Sequence[str]) -> Plan:
        """The operations that add something, and add it from what may be remembered of the exchange."""
        kept: Plan = []
        for planned in plan:
            if isinstance(planned, CoreChange) and self._core_memory:
                patch = _new_in(planned, exchange, core)
                if patch:
                    kept.append(planned.model_copy(update={"patch": patch}))
            elif isinstance(planned, NewMemory) and self._archive:
                of_the_user = planned.episode_type in ("preference", "context")
                repeated = of_the_user and _is_repeated(planned.content, exchange)
                known = [
                    *written,
                    *texts_of(core),
                    *(each.content for each in kept if isinstance(each, NewMemory)),
                ]
                if not repeated and not any(say_the_same(planned.content, text) for text in known):
                    kept.append(planned)
            elif isinstance(planned, Retirement) and self._archive and exchange.episode_id:
                kept.append(planned)
        return kept

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
        for old in await self._episodes.written(exchange.owner, limit=_WRITTEN):
            if old.id not in ours and old.created_at < exchange.at and contradicted(old.content, new):
                await self._supersede(old.id, by, exchange, signals, str(len(plan) + 1))

    async def _core(self, exchange: Exchange) -> Content:
        if self._core_memory is None:
            return {}
        return {block.section: block.content for block in await self._core_memory.read(exchange.owner)}

    async def _written(self, exchange: Exchange) -> list[str]:
        if self._archive is None:
            return []
        return [each.content for each in await self._episodes.written(exchange.owner, limit=_WRITTEN)]

    async def _nearest(self, exchange: Exchange) -> list[Near]:
        if self._archive is None:
            return []
        scope = Scope(exchange.tenant_id, exchange.user_id, exchange.expert_id)
        found = await self._archive.search(
            scope, exchange.said[:_LONGEST_QUERY], top_k=_NEAREST + 1, now=datetime.now(UTC)
        )
        return [
            Near(each.id, each.episode_type, each.content, f"{each.created_at:%Y-%m-%d}")
            for each in found.items
            if each.id != exchange.episode_id
        ][:_NEAREST]


def _is_repeated(text: str, exchange: Exchange) -> bool:
    """Whether only the answer says it: then it may come from memory, and is not filed again."""
    what = informative_terms(text)
    return bool(what) and what.isdisjoint(terms(exchange.said)) and not what.isdisjoint(terms(exchange.answer))


def _new_in(change: CoreChange, exchange: Exchange, core: Content) -> dict[str, Any]:
    section = core.get(change.section, {})
    return without(change.patch, lambda text: _is_repeated(text, exchange) or _is_known(text, section))


def _is_known(text: str, section: Mapping[str, Any]) -> bool:
    return claim_of(text).tells and normalised(text) in map(normalised, texts_of(section))


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
