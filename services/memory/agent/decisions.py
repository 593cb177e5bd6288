"""Decides what the memory agent files: by a model or by rules, leaving out what is known already."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog

from services.errors import BadModelOutput, NotFound, Unavailable
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for
from services.memory.agent import prompts as agent_prompts
from services.memory.agent.absolute_dates import make_dates_absolute
from services.memory.agent.answer import Operations, plan_of_answer
from services.memory.agent.fact_filing import plan_of_facts
from services.memory.agent.facts import facts_of
from services.memory.agent.plan import (
    MOST_OPERATIONS,
    Content,
    CoreChange,
    Forgetting,
    Known,
    Near,
    NewMemory,
    Plan,
    Planned,
    is_known,
    settled,
    texts_of,
)
from services.memory.agent.store import AgentStore, Exchange
from services.memory.agent.triggers import may_ask_to_forget
from services.memory.archive import Archive
from services.memory.core import CoreMemory
from services.memory.episodes.episode import WrittenEpisode
from services.memory.episodes.scope import Scope
from services.memory.episodes.store import EpisodeStore
from services.memory.foreign_origins import ForeignOrigins
from services.memory.items import SINGLE_FIELDS
from services.platform.threads import Result, beside_the_loop
from services.search.duplicates import are_duplicates
from services.text.sentences import sentences
from services.text.tokenizer import informative_terms, terms
from services.time_reference.validity import TimedText, timed, with_mark
from services.time_reference.zones import time_zone

_NEAREST = 8
_EARLIER = 6
"""Preceding messages shown to the model."""
_LONGEST_QUERY = 500
_LONG = 2_000
"""Characters of exchanges from which a thread computes what may be remembered of them."""
WRITTEN = 200
"""Number of newest written memories with which a new one is compared."""
_MAKES_ROOM = 600
"""Bytes dropped from a full section at a time."""
_CHANGES_LOOKED_AT = 20
"""Versions of a section in which a later change is searched for."""
_NEVER_DATED = frozenset(["name", "preferred_name"])
_UPCOMING = frozenset(["plans", "current_intent"])
_DROPPED_FIRST = ("current_intent", "plans", "facts", "habits", "possessions", "hobbies", "preferences")
"""Fields of a full section whose oldest items are dropped; other fields are kept."""

_OF_THE_USER = re.compile(r"^(?:the )?user(?: has)? |^用户(?:已经)?", re.IGNORECASE)

log = structlog.get_logger(__name__)


class DecisionMaker:
    """Decides what to file of exchanges."""

    def __init__(
        self,
        models: ChatModels,
        store: AgentStore,
        episodes: EpisodeStore,
        core_memory: CoreMemory | None,
        archive: Archive | None,
        origins: ForeignOrigins,
    ) -> None:
        """Take the stores to compare with; None = core memory, or episodes, are switched off."""
        self._models = models
        self._store = store
        self._episodes = episodes
        self._core_memory = core_memory
        self._archive = archive
        self._origins = origins

    @property
    def offline(self) -> bool:
        """Whether no model is asked."""
        return self._models.offline

    async def decide(self, exchanges: Sequence[Exchange]) -> tuple[Plan, str]:
        """Return the plan for exchanges, and who decided: `model`, or `rules` if no model did.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        first = exchanges[0]
        core = await self.core(first)
        plan = None if self.offline else await self._ask(exchanges, core)
        by = "model"
        if plan is None:
            plan = await _beside(exchanges, partial(self._by_rules, exchanges, core))
            by = "rules"
        last = exchanges[-1]
        with_dates = [dated(planned, last.at, last.timezone) for planned in plan]
        written = await self._written(first)
        kept = await _beside(exchanges, partial(self._worth_it, with_dates, exchanges, core, written))
        newer = {each.section for each in kept if isinstance(each, CoreChange) and each.section in core}
        newer = {section for section in newer if await self._changed_since(exchanges, section)}
        return [each for each in kept if _may_be_done(each, core, newer)][:MOST_OPERATIONS], by

    def _by_rules(self, exchanges: Sequence[Exchange], core: Content) -> Plan:
        facts = [fact for each in exchanges for fact in facts_of(each.said)]
        return plan_of_facts(facts, core, has_core=self._core_memory is not None)

    async def core(self, exchange: Exchange) -> Content:
        """Return the content of each section of core memory.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        if self._core_memory is None:
            return {}
        return await self._core_memory.known(exchange.owner)

    @staticmethod
    def least_useful(section: str, content: Mapping[str, Any]) -> list[CoreChange]:
        """Return the removals that make room in a full section: the oldest items of the least lasting fields."""
        removals: list[CoreChange] = []
        freed = 0
        for name in _DROPPED_FIRST:
            value = content.get(name)
            items = value[:-1] if isinstance(value, list) else []
            for item in items:
                if freed >= _MAKES_ROOM:
                    return removals
                if isinstance(item, str):
                    removals.append(CoreChange(action="remove", section=section, field=name, old=item))
                    freed += len(item.encode())
        return removals

    async def _changed_since(self, exchanges: Sequence[Exchange], section: str) -> bool:
        """Whether a section has changed because of something later than these exchanges: a job may run late."""
        if self._core_memory is None:
            return False
        first = exchanges[0]
        # Changes made by their own turns, at the user's request, are not later.
        own = {message for each in exchanges for message in (each.message_id, each.answer_message_id)}
        try:
            changes = await self._core_memory.history(first.owner, section, limit=_CHANGES_LOOKED_AT)
        except NotFound:  # the space lacks this section: what is shared is not changed
            return False
        later = max(first.message_id, first.answer_message_id)
        return any(
            # Ids increase with time.
            change.at > first.at if change.trigger_message_id is None else change.trigger_message_id > later
            for change in changes
            if change.trigger_message_id not in own
        )

    async def _ask(self, exchanges: Sequence[Exchange], core: Content) -> Plan | None:
        known = Known(core, await self._nearest(exchanges))
        earlier = await self._store.earlier(exchanges[0], limit=_EARLIER)
        asked = agent_prompts.about(exchanges, earlier, known)
        try:
            return await ask_for(
                self._models,
                asked,
                lambda text: plan_of_answer(text, known),
                schema=Operations,
                purpose="memory_operations",
            )
        except (BadModelOutput, Unavailable) as error:
            log.warning("the memory agent goes by rules", turn_id=str(exchanges[0].turn_id), reason=error.message)
            return None

    def _worth_it(
        self, plan: Plan, exchanges: Sequence[Exchange], core: Content, written: Sequence[WrittenEpisode]
    ) -> Plan:
        """Return the operations that add something new, based on what may be remembered of the exchanges."""
        kept: Plan = []
        for planned in plan:
            if isinstance(planned, CoreChange):
                content = core.get(planned.section, {})
                repeated = any(_is_repeated(text, exchanges) for text in texts_of(planned.value))
                if self._core_memory and not repeated and not is_known(planned, content):
                    kept += settled(planned, content, exchanges[-1].at.date())
            elif isinstance(planned, NewMemory):
                of_the_user = planned.episode_type in ("preference", "context")
                repeated = of_the_user and _is_repeated(planned.content, exchanges)
                known = [
                    *(each.content for each in written if each.id != planned.replaces),
                    *texts_of(core),
                    *(each.content for each in kept if isinstance(each, NewMemory)),
                ]
                if (
                    self._archive
                    and not repeated
                    and not any(_say_the_same(planned.content, text) for text in known)
                ):
                    sources = [
                        source for each in exchanges for source in (each.message_id, each.answer_message_id)
                    ]
                    kept.append(planned.model_copy(update={"sources": sources}))
            elif isinstance(planned, Forgetting):
                if any(may_ask_to_forget(each.said) for each in exchanges):
                    kept.append(planned)
            elif self._archive and exchanges[0].episode_id:
                kept.append(planned)
        return kept

    async def _written(self, exchange: Exchange) -> list[WrittenEpisode]:
        return await self._episodes.written(exchange.owner, limit=WRITTEN) if self._archive else []

    async def _nearest(self, exchanges: Sequence[Exchange]) -> list[Near]:
        if self._archive is None:
            return []
        first = exchanges[0]
        scope = Scope.of(first.owner)
        said = "\n".join(each.said for each in exchanges)[:_LONGEST_QUERY]
        found = await self._archive.search(scope, said, top_k=_NEAREST + len(exchanges), now=datetime.now(UTC))
        own = {each.episode_id for each in exchanges}
        ids = [str(each.id) for each in found.items]
        foreign = await self._origins.among(first.tenant_id, first.user_id, episodes=ids)  # they may instruct
        return [
            Near(each.id, each.episode_type, each.content, f"{each.created_at:%Y-%m-%d}")
            for each in found.items
            if each.id not in own and str(each.id) not in foreign.episodes
        ][:_NEAREST]


def dated(planned: Planned, at: datetime, timezone: str) -> Planned:
    """Return an operation with its relative dates made absolute, by when and where it was said.

    A value that says when it holds gets a mark of it. One that is over, or yet to begin, is not the value of a
    field that has only one: it goes to the field `facts`, or `plans`.
    """
    now = at.astimezone(time_zone(timezone))
    if isinstance(planned, CoreChange) and isinstance(planned.value, str) and planned.field not in _NEVER_DATED:
        read = timed(planned.value, now)
        value = make_dates_absolute(read.text, at, timezone, is_upcoming=planned.field in _UPCOMING)
        change = planned.model_copy(update={"value": with_mark(value, read.validity, now.date())})
        if planned.field not in SINGLE_FIELDS or read.validity.holds_on(now.date()):
            return change
        field = "facts" if read.validity.is_over(now.date()) else "plans"
        return change.model_copy(update={"field": field, "action": "add", "old": None})
    if isinstance(planned, NewMemory):
        read = timed(planned.content, now) if _is_one_sentence(planned.content) else TimedText(planned.content, "")
        content = make_dates_absolute(read.text, at, timezone)
        if read.words:
            content = with_mark(content.rstrip(" .。"), read.validity, now.date())
        return planned.model_copy(update={"content": content})
    return planned


def _is_one_sentence(text: str) -> bool:
    return len([each for each in sentences(text) if each.text.strip()]) == 1


def _may_be_done(planned: Planned, core: Content, newer: Collection[str]) -> bool:
    """Whether an operation overwrites nothing newer than what was said."""
    if not isinstance(planned, CoreChange) or planned.section not in newer:
        return True
    there = core[planned.section]
    if planned.action == "remove":
        return False
    return planned.field not in there or (planned.action == "add" and isinstance(there[planned.field], list))


async def _beside(exchanges: Sequence[Exchange], work: Callable[[], Result]) -> Result:
    """Compute what may be remembered of exchanges; in a thread if they are long."""
    characters = sum(len(each.said) + len(each.answer) for each in exchanges)
    return await beside_the_loop(work, characters=characters, most=_LONG)


def _say_the_same(one: str, other: str) -> bool:
    return are_duplicates(_OF_THE_USER.sub("", one), _OF_THE_USER.sub("", other))


def _is_repeated(text: str, exchanges: Sequence[Exchange]) -> bool:
    """Whether only the answers say it: then it may come from memory and is not filed again."""
    what = informative_terms(text)
    said = terms("\n".join(each.said for each in exchanges))
    answers = terms("\n".join(each.answer for each in exchanges))
    return bool(what) and what.isdisjoint(said) and not what.isdisjoint(answers)
