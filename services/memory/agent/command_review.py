"""Reviews turns that may ask for a change of memory: a small model decides what rules could not, or did wrongly.

Rules obey plain commands within the turn. Afterwards the model reads the message beside the memories that it may
mean and says what they say from then on; what it says otherwise than the rules replaces what these did. It removes
words of memories and puts in words of the message, and nothing else. Without a model rules have the last word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row

from services.encryption.marks import WordsInJson
from services.errors import BadModelOutput, Conflict, ModelFailed, NotFound
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for
from services.memory.agent import review_sql as sql
from services.memory.agent.review_prompt import Review, ShownMemory, ids_of, question, review_of
from services.memory.agent.store import Exchange
from services.memory.agent.triggers import DECIDE_COMMAND, may_ask_to_forget
from services.memory.commands.holdings import CoreItem, Holdings, items_of
from services.memory.commands.pieces import Stored
from services.memory.commands.reading import ResolutionRequest
from services.memory.commands.recogniser import news, recognise
from services.memory.commands.resolution import Resolution
from services.memory.commands.reviewed import reviewed_change
from services.memory.commands.targets import sought_by
from services.memory.operations import Trigger
from services.memory.removal.hiding import COMMAND, EndedExchange, Retraction
from services.memory.removal.hiding_sql import PARTS_OF
from services.memory.removal.undo import Undo
from services.memory.trust import own_words
from services.platform.postgres import Database
from services.text.language import language_of
from state.memory import Command, PlannedChange, Recognised

_BEYOND_DOUBT = 0.95
"""Probability from which on something was to be removed from memory even where the model sees no command."""
_KEPT = frozenset(("remember", "standing"))
"""Kinds of changes without which nothing comes back into memory."""
_LEAVING_OUT = frozenset(("do_not_remember", "forget"))
"""Kinds of commands by which a message itself may be left out."""
_LIKELY = 0.3
"""Probability from which on a message may ask to forget something without a word for it."""
_MOST_MEMORIES, _MOST_ITEMS = 10, 30
_LONGEST = 1_500
"""Characters of a memory that is shown, and so may change."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Done:
    """What the turn itself changed in memory."""

    operations: Sequence[UUID] = ()
    kinds: frozenset[str] = frozenset()
    """Kinds of these, as commands have them."""
    messages: Sequence[Stored] = ()
    """The messages that it changed, as they were before."""
    sections: dict[str, Any] | None = None
    """The sections of core memory that it changed, as they were before."""


class CommandReview:
    """Reviews turns. Every process with a worker has one, which registers the job."""

    def __init__(
        self,
        database: Database,
        models: ChatModels,
        resolution: Resolution,
        retraction: Retraction,
        undo: Undo,
        jobs: JobQueue,
    ) -> None:
        self._database = database
        self._models = models
        self._resolution = resolution
        self._retraction = retraction
        self._undo = undo
        jobs.task(DECIDE_COMMAND)(self._job)

    async def decide(self, tenant_id: UUID, turn_id: UUID) -> str:
        """Have memory changed as the turn asks for, and release it for recall; return what it asks for.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values: dict[str, Any] = {"tenant_id": tenant_id, "turn_id": turn_id}
        found = await self._database.fetch(tenant_id, sql.REVIEWED, values, class_row(Exchange))
        if not found:
            return "none"
        exchange = replace(found[0], said=own_words(found[0].said))
        values |= {
            **vars(exchange.owner),
            "at": exchange.at,
            "command": COMMAND,
            "episode_id": exchange.episode_id,
        }
        otherwise = await self._database.fetch(tenant_id, sql.CHANGED_OTHERWISE, values, tuple_row)
        command = "none" if otherwise else await self._review(exchange, values)
        await self._database.fetch(tenant_id, sql.RELEASE, values, tuple_row)
        log.info("memory command decided", turn_id=str(turn_id), command=command)
        return command

    async def _review(self, exchange: Exchange, values: dict[str, Any]) -> str:
        recognised = recognise(exchange.said)
        asking = ResolutionRequest(
            owner=exchange.owner,
            conversation_id=exchange.conversation_id,
            message_id=exchange.message_id,
            message=exchange.said,
            language=language_of([exchange.said]),
            recognised=recognised,
        )
        done = await self._done(exchange, values)
        if self._models.offline:
            return await self._by_rules(exchange, asking, done)
        if "do_not_remember" in done.kinds and _LEAVING_OUT.isdisjoint(each.kind for each in recognised.commands):
            return "none"  # the turn repeats what is off the record, which must stay out
        try:
            review, meant = await self._answer(exchange, asking, done)
        except (BadModelOutput, ModelFailed):
            return await self._by_rules(exchange, asking, done)
        if review.command == "none":
            if done.operations and (recognised.probability < _BEYOND_DOUBT or done.kinds <= _KEPT):
                await self._amend(exchange, None, done)
        elif _can_be_done(review, exchange.said, recognised.probability):
            texts = _texts(review, meant)
            planned = await reviewed_change(self._resolution, asking, review.command, texts, review.message)
            await self._amend(exchange, planned, done)
            return review.command
        return "none"

    async def _answer(self, exchange: Exchange, asking: ResolutionRequest, done: _Done) -> tuple[Review, "_Meant"]:
        """Ask the model; return its answer, and what the answer's ids stand for.

        Raises:
            ModelFailed, BadModelOutput: there is no usable answer.
        """
        holdings = await self._held(asking, done)
        meant = _may_be_meant(asking, holdings)
        shown = ids_of("c", [ShownMemory(each.text, each.field) for each in meant.items]) | ids_of(
            "m", [_shown(each, holdings) for each in meant.stored]
        )
        review = await ask_for(
            self._models,
            question(exchange.said, shown, now=exchange.at, timezone=exchange.timezone),
            lambda answer: review_of(answer, exchange.said, shown),
            schema=Review,
            purpose="memory_command",
        )
        return review, meant

    async def _by_rules(self, exchange: Exchange, asking: ResolutionRequest, done: _Done) -> str:
        """Remove nothing; leave out a turn that may be off the record, which can be undone."""
        named = next((each for each in asking.recognised.commands if each.kind == "do_not_remember"), None)
        if named is None or done.operations or not exchange.is_held:
            return "none"
        made = replace(named, certainty="plain")
        planned = await self._resolution.plan(
            replace(asking, recognised=Recognised((made,), asking.recognised.rest))
        )
        for change in planned:
            await self._amend(exchange, change, done)
        return "leave_out"

    async def _done(self, exchange: Exchange, values: dict[str, Any]) -> _Done:
        """Return what the turn itself changed, and what that said before."""
        rows = await self._database.fetch(exchange.tenant_id, sql.DONE, values, tuple_row)
        before: dict[UUID, str | None] = {}
        sections: dict[str, Any] = {}
        for operation_id, old, _ in rows:  # the oldest first, which knows what was there before all of them
            for each in (old or {}).get("messages", []):
                before.setdefault(UUID(each["id"]), each["memory_text"])
            of_operation = {**values, "operation_id": operation_id}
            parts = await self._database.fetch(exchange.tenant_id, PARTS_OF, of_operation, tuple_row)
            sections = {**{part[2]: part[3] or {} for part in parts}, **sections}
        ids = {**values, "ids": list(before), "message_id": exchange.message_id}
        stored = await self._database.fetch(exchange.tenant_id, sql.BEFORE_CHANGE, ids, class_row(Stored))
        messages = [replace(each, content=before[each.id] or each.content) for each in stored]
        kinds = frozenset(row[2] for row in rows)
        return _Done([row[0] for row in rows], kinds, messages, sections)

    async def _held(self, asking: ResolutionRequest, done: _Done) -> Holdings:
        """Return what memory held before the turn changed it."""
        core = {**(await self._resolution.reader.core(asking)).own, **(done.sections or {})}
        found = await self._resolution.reader.holdings(
            _meaning(asking), asking, core, await self._resolution.reader.before(asking)
        )
        changed = {each.id: each for each in done.messages}
        stored = {each.id: each for each in found.stored} | changed
        before = [changed.get(each.id, each) for each in found.just_before]
        lost = [
            each
            for each in done.messages
            if each.conversation_id == asking.conversation_id and each.id not in {one.id for one in before}
        ]
        ordered = sorted(stored.values(), key=lambda each: (each.created_at, each.id))
        last = sorted([*before, *lost], key=lambda each: (each.created_at, each.id), reverse=True)[:2]
        return Holdings(ordered, list(items_of(core)), last)

    async def _amend(self, exchange: Exchange, planned: PlannedChange | None, done: _Done) -> None:
        """Put a change, or none, into the place of what the turn did; both or nothing."""
        ended = EndedExchange(
            exchange.turn_id,
            exchange.conversation_id,
            exchange.message_id,
            exchange.answer_message_id,
            exchange.answer,
        )
        trigger = Trigger(
            "memory_agent",
            exchange.message_id,
            exchange.conversation_id,
            exchange.turn_id,
            exchange.expert_id,
            exchange.space_id,
        )
        try:
            async with self._database.tenant(exchange.tenant_id) as connection:
                for operation_id in reversed(done.operations):
                    await self._undo.revert(
                        connection, exchange.tenant_id, exchange.user_id, operation_id, actor="memory_agent"
                    )
                if planned is not None:
                    await self._retraction.commit(connection, exchange.owner, planned, trigger, ended)
                changes = [planned["change"]] if planned is not None else []
                report = {"changes": WordsInJson(changes), "turn_id": exchange.turn_id}
                await connection.execute(sql.REPORT, {**report, "tenant_id": exchange.tenant_id})
        except (Conflict, NotFound):  # the user has changed the same meanwhile
            log.info("a review came too late", turn_id=str(exchange.turn_id))

    async def _job(self, job: RunningJob, *, turn_id: UUID, **_: UUID) -> None:
        await self.decide(job.tenant_id, turn_id)


def _can_be_done(review: Review, said: str, probability: float) -> bool:
    """Whether a command changes anything, and a request to forget can be one: a weak model may see it anywhere."""
    if review.command == "forget" and probability < _LIKELY and not may_ask_to_forget(said):
        return False
    return bool(review.memories) or review.command not in {"forget", "correct"}


@dataclass(frozen=True)
class _Meant:
    """What a message may mean, in the order in which it is shown."""

    items: Sequence[CoreItem]
    stored: Sequence[Stored]


def _meaning(asking: ResolutionRequest) -> Command:
    """Return the command by whose words memories are sought: the recognised one, else what may be news."""
    kinds = ("forget", "correct")
    return next((each for each in asking.recognised.commands if each.kind in kinds), None) or news(asking.message)


def _may_be_meant(asking: ResolutionRequest, holdings: Holdings) -> _Meant:
    """Return what was said just before, and the likeliest of the rest; of core memory as much as has room."""
    likely = holdings.likely(sought_by(_meaning(asking), asking.message))
    chosen = {each.id: each for each in holdings.just_before}
    items: list[CoreItem] = []
    for _, place in likely:
        if isinstance(place.of, CoreItem):
            if len(items) < _MOST_ITEMS and place.of not in items:
                items.append(place.of)
        elif len(chosen) < _MOST_MEMORIES and len(place.of.content) <= _LONGEST:
            chosen[place.of.id] = place.of
    return _Meant(items, sorted(chosen.values(), key=lambda each: (each.created_at, each.id)))


def _shown(stored: Stored, holdings: Holdings) -> ShownMemory:
    is_last = any(each.id == stored.id for each in holdings.just_before)
    return ShownMemory(stored.content, at=stored.created_at, is_last=is_last)


def _texts(review: Review, meant: _Meant) -> list[tuple[Stored | CoreItem, str]]:
    """Return the memories that change, with their texts afterwards."""
    of_id: dict[str, Stored | CoreItem] = {f"c{number}": each for number, each in enumerate(meant.items, 1)}
    of_id |= {f"m{number}": each for number, each in enumerate(meant.stored, 1)}
    return [(of_id[each.id], each.text) for each in review.memories]
