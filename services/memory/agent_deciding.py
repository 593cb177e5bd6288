"""What the memory agent does about an exchange: what a model says, or rules, without what is known already."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from services.errors import BadModelOutput, Unavailable
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
    added_only,
    plan_of_answer,
    plan_of_findings,
    texts_of,
    without,
)
from services.memory.agent_rules import findings
from services.memory.agent_store import Exchange
from services.memory.archive import Archive
from services.memory.contradictions import claim_of, normalised
from services.memory.core import CoreMemory
from services.memory.duplicates import say_the_same
from services.memory.episode import WrittenEpisode
from services.memory.episodes import EpisodeStore
from services.memory.index import Scope
from services.memory.terms import informative_terms, terms

_NEAREST = 8
_LONGEST_QUERY = 500
WRITTEN = 200
"""The newest written memories, beside which a new one is looked at."""

_OF_THE_USER = re.compile(r"^(?:the )?user(?: has)? |^用户(?:已经)?", re.IGNORECASE)

log = structlog.get_logger(__name__)

Content = Mapping[str, Mapping[str, Any]]
"""Of each section of core memory."""


class Deciding:
    """Decides what of an exchange is filed."""

    def __init__(
        self, models: ChatModels, episodes: EpisodeStore, core_memory: CoreMemory | None, archive: Archive | None
    ) -> None:
        """Take what it looks at; None = core memory, or episodes, are switched off."""
        self._models = models
        self._episodes = episodes
        self._core_memory = core_memory
        self._archive = archive

    async def decide(self, exchange: Exchange) -> tuple[Plan, str]:
        """What is to be done about an exchange, and who says so: `model`, or `rules` where no model does.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        core = await self._core(exchange)
        plan = None if self._models.offline else await self._ask(exchange, core)
        by = "model"
        if plan is None:
            human = core.get("human", {})
            plan = plan_of_findings(findings(exchange.said), human, core=self._core_memory is not None)
            by = "rules"
        kept = self._worth_it(plan, exchange, core, await self._written(exchange))
        newer = {each.section for each in kept if isinstance(each, CoreChange) and each.section in core}
        newer = {section for section in newer if await self._changed_since(exchange, section)}
        return list(_without_what_is_newer(kept, core, newer)), by

    async def _changed_since(self, exchange: Exchange, section: str) -> bool:
        """Whether somebody has changed a section for a later reason than this exchange: a job may run late."""
        if self._core_memory is None:
            return False
        (last,) = await self._core_memory.history(exchange.owner, section, limit=1)
        if last.trigger_message_id is None:
            return last.at > exchange.at
        return last.trigger_message_id > exchange.message_id  # ids grow with time

    async def _ask(self, exchange: Exchange, core: Content) -> Plan | None:
        nearest = await self._nearest(exchange)
        asked = agent_prompts.about(exchange.said, exchange.answer, core, nearest)
        try:
            return await ask_for(self._models, asked, lambda text: plan_of_answer(text, nearest))
        except (BadModelOutput, Unavailable) as error:
            log.warning("the memory agent goes by rules", turn_id=str(exchange.turn_id), reason=error.message)
            return None

    def _worth_it(self, plan: Plan, exchange: Exchange, core: Content, written: Sequence[WrittenEpisode]) -> Plan:
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
                    *(each.content for each in written if each.id != planned.replaces),
                    *texts_of(core),
                    *(each.content for each in kept if isinstance(each, NewMemory)),
                ]
                if not repeated and not any(_say_the_same(planned.content, text) for text in known):
                    kept.append(planned)
            elif isinstance(planned, Retirement) and self._archive and exchange.episode_id:
                kept.append(planned)
        return kept

    async def _core(self, exchange: Exchange) -> Content:
        if self._core_memory is None:
            return {}
        return {block.section: block.content for block in await self._core_memory.read(exchange.owner)}

    async def _written(self, exchange: Exchange) -> list[WrittenEpisode]:
        return await self._episodes.written(exchange.owner, limit=WRITTEN) if self._archive else []

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


def _without_what_is_newer(plan: Plan, core: Content, newer: Collection[str]) -> Iterator[Planned]:
    """Of changes to sections that were changed since, only what adds to them."""
    for planned in plan:
        if isinstance(planned, CoreChange) and planned.section in newer:
            if patch := added_only(planned.patch, core[planned.section]):
                yield planned.model_copy(update={"patch": patch})
        else:
            yield planned


def _say_the_same(one: str, other: str) -> bool:
    return say_the_same(_OF_THE_USER.sub("", one), _OF_THE_USER.sub("", other))


def _is_repeated(text: str, exchange: Exchange) -> bool:
    """Whether only the answer says it: then it may come from memory, and is not filed again."""
    what = informative_terms(text)
    return bool(what) and what.isdisjoint(terms(exchange.said)) and not what.isdisjoint(terms(exchange.answer))


def _new_in(change: CoreChange, exchange: Exchange, core: Content) -> dict[str, Any]:
    section = core.get(change.section, {})
    return without(change.patch, lambda text: _is_repeated(text, exchange) or _is_known(text, section))


def _is_known(text: str, section: Mapping[str, Any]) -> bool:
    return claim_of(text).tells and normalised(text) in map(normalised, texts_of(section))
