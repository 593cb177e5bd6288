"""history: gathers the sections of the prompt. All sources load at the same time, then each selects, in order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from langgraph.runtime import Runtime

from services.context.conversation import Conversation, FetchedConversation
from services.context.request_budget import allowance
from services.context.source import Known, PromptTurn, ShownConversation, Source
from services.context.sources.recall import RecallSource
from services.errors import Unavailable
from services.llm.chat_models import ChatModels
from services.llm.token_estimates import TokenEstimator, TokenEstimators
from services.memory.changes import Changes
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.platform.patience import Patience, Result, beside_the_loop
from services.summaries.topics import TopicArchive
from services.text.language import language_of
from services.tools.actor import owner_of
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState, section_named
from state.memory import PlainForm, PlannedChange
from state.prompt import HistoryMessage

_MUCH_TEXT = 20_000
"""Characters of the message, the conversation and what was recalled."""

log = structlog.get_logger(__name__)


async def history(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    sources: Sequence[Source[Any]],
    conversation: Conversation,
    topics: TopicArchive,
    models: ChatModels,
    tools: ToolRegistry,
    estimators: TokenEstimators,
    changes: Changes,
) -> ConversationState:
    """Read what the prompt shows of the conversation, of memory, of the days that the message asks about, and of
    how the user sounds."""
    context = runtime.context
    # A model with tools acts by them; for any other one, the service carries plain forms out before it is asked.
    acts = models.takes_tools(state.get("model"))
    planned = [] if acts else await planned_forms(state.get("plain_forms", []), state, context, changes)
    offered = tools.with_features(state["features"], temporary=context.temporary, expert=context.expert)
    turn = _prompt_turn(
        state,
        context,
        tokens=estimators.of(state.get("model") or ""),
        tools=offered.described if acts else "",
        planned=planned,
    )
    known = await gather(sources, turn, conversation=conversation, topics=topics)
    update = _update(known)
    update["not_recalled"] = sorted(known.conversation.excluded | turn.without)
    if planned:
        update["memory_plan"] = planned
        update["memory_changes"] = [each["change"] for each in planned]
    days = update.get("asked_days")
    if days and turn.reference:
        nothing_said = days["known"] and not days["summaries"] and not days["said"]
        nothing_else = turn.reference["plain"] and not state.get("quick_tools") and not state.get("images")
        nothing_else = nothing_else and "response_format" not in state.get("sampling", {})
        update["told_without_model"] = nothing_said and nothing_else and not planned
    recalled = known.of(RecallSource)
    if recalled and recalled.loading_milliseconds >= 1:
        update["timings"] = {"memory_loading_ms": recalled.loading_milliseconds}
    if recalled and recalled.message_vector is not None and state.get("use_retrieval"):
        update["message_vector"] = recalled.message_vector.tolist()
    return update


async def planned_forms(
    forms: Sequence[PlainForm], state: ConversationState, context: TurnContext, changes: Changes
) -> list[PlannedChange]:
    """Return what plain forms of the message change in memory; most messages have none, and nothing is read."""
    return (
        await changes.planner.plan_forms(change_request(state, context), forms, state["message"]) if forms else []
    )


def change_request(state: ConversationState, context: TurnContext) -> ChangeRequest:
    """Return for whom, and by which message, the turn changes memory."""
    message_id, conversation_id = UUID(context.user_message_id), UUID(context.conversation_id)
    trigger = Trigger("user", message_id, conversation_id, UUID(context.turn_id))
    language = language_of([state["message"]])
    return ChangeRequest(owner_of(context), conversation_id, message_id, trigger, language)


def _prompt_turn(
    state: ConversationState,
    context: TurnContext,
    *,
    tokens: TokenEstimator,
    tools: str,
    planned: Sequence[PlannedChange],
) -> PromptTurn:
    """Return what the sections are loaded for."""
    return PromptTurn(
        owner=owner_of(context),
        conversation_id=UUID(context.conversation_id),
        message_id=UUID(state["user_message_id"]),
        message=state["message"],
        language=language_of([state["message"]]),
        now=state["now"],
        timezone=context.timezone,
        locale=context.locale,
        system_prompt=state["system_prompt"],
        policy=state["context_policy"],
        tokens=tokens,
        features=frozenset(state["features"]),
        tools=tools,
        images=len(state.get("images", [])),
        begins=state.get("begins", False),
        remembers=state.get("remembers", True),
        asks=state.get("asks", True),
        reflects=state.get("reflects", True),
        core_memory_generation=state.get("core_memory_generation"),
        memory_generation=state.get("memory_generation"),
        reference=state.get("time_reference"),
        most_tokens=state.get("max_context_tokens"),
        within_s=allowance(state).besides_answer_s,
        memory_plan=planned,
        recall_limits=state.get("recall_limits"),
        instructions=state.get("instructions", ""),
        attached=state.get("attached", ()),
        earlier=state.get("earlier", ()) if context.temporary else (),
        temporary=context.temporary,
        without=frozenset(state.get("without", ())),
    )


def _update(known: Known) -> ConversationState:
    """Return the state update: the sections and what other nodes read."""
    shown = known.conversation
    days = section_named(known.sections, "days")
    update = ConversationState(
        sections=known.sections,
        history=shown.history,
        epoch=shown.epoch,
        context_budget=shown.budget,
        prompt_language=shown.language,
        after_turn=shown.jobs,
    )
    if days:
        update["asked_days"] = days.data
    if known.degraded:
        update["degraded"] = known.degraded
    return update


async def gather(
    sources: Sequence[Source[Any]], turn: PromptTurn, *, conversation: Conversation, topics: TopicArchive
) -> Known:
    """Load and select; sources that fail or are late are left out and named in `degraded`.

    If the conversation is full, topics are archived first.

    Raises:
        DatabaseUnavailable: the conversation cannot be read.
    """
    degraded: list[str] = []
    loading = [source for source in sources if source.loads]
    data: dict[type[Source[Any]], Any] = {
        type(source): source.when_off() for source in loading if not source.is_on(turn)
    }
    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(conversation.load(turn))
            tasks = {
                type(source): group.create_task(_load(source, turn, reading, degraded))
                for source in loading
                if type(source) not in data
            }
    except ExceptionGroup as failed:  # the graph handles the error itself, with a retry
        raise failed.exceptions[0] from None
    data |= {kind: task.result() for kind, task in tasks.items()}
    data[Conversation] = reading.result()

    def shown() -> ShownConversation:
        for source in sources:
            source.revise(turn, data)
        return conversation.show(turn, data)

    known = Known(data, await _beside(turn, data, shown), degraded)
    if known.conversation.full:
        if await topics.archive_in_time(turn.owner.tenant_id, turn.conversation_id):
            data[Conversation] = await conversation.load(turn)
            known.conversation = await _beside(turn, data, shown)
        else:
            known.went_without("topics")
    await _beside(turn, data, partial(select_all, sources, turn, known))
    return known


async def _beside(turn: PromptTurn, data: Mapping[type[Any], Any], work: Callable[[], Result]) -> Result:
    """Do some work on what was loaded."""
    fetched: FetchedConversation = data[Conversation]
    characters = len(turn.message) + sum(len(each["content"]) for each in fetched.history)
    if (recalled := data.get(RecallSource)) is not None:
        characters += sum(len(unit.text) for unit in recalled.units.values())
    return await beside_the_loop(work, characters=characters, most=_MUCH_TEXT)


def select_all(sources: Sequence[Source[Any]], turn: PromptTurn, known: Known) -> None:
    """Let each active source select its sections, in order."""
    for source in sources:
        if source.is_on(turn):
            known.sections += source.select(turn, known)


def _seconds_of(source: Source[Any], turn: PromptTurn) -> float | None:
    """Return how long a source may load; what the prompt cannot do without is waited for."""
    if turn.within_s is None or source.required:
        return source.within_s
    return turn.within_s if source.within_s is None else min(source.within_s, turn.within_s)


async def _load(
    source: Source[Any], turn: PromptTurn, reading: asyncio.Task[FetchedConversation], degraded: list[str]
) -> Any:
    """Return what the source loads; None if it fails."""

    async def history() -> Sequence[HistoryMessage]:
        return (await asyncio.shield(reading)).history

    try:
        async with Patience(_seconds_of(source, turn)):
            return await source.load_after(turn, history)
    except (Unavailable, TimeoutError) as error:
        if source.required:
            raise
        log.warning("left out of the prompt", source=source.name, error=type(error).__name__)
        degraded.append(source.name)
        return None
