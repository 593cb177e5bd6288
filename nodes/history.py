"""history: gathers the sections of the prompt. All sources load at the same time, then each selects, in order."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
from langgraph.runtime import Runtime

from services.context.conversation import Conversation
from services.context.epochs import StoredConversation
from services.context.request_budget import allowance
from services.context.source import PromptDraft, Source
from services.context.sources.recall import RecallSource
from services.errors import Unavailable
from services.llm.chat_models import ChatModels
from services.llm.token_estimates import TokenEstimators
from services.memory.changes import Changes
from services.memory.model import ChangeRequest
from services.memory.planning.orders import plan_form
from services.platform.patience import Patience, beside_the_loop
from services.promises.promises import promised_change
from services.summaries.topics import TopicArchive
from services.text.language import language_of
from services.tools.registry import ToolRegistry
from state.conversation import ConversationState, section_named
from state.memory import PlainForm, PlannedChange
from state.turn import OpenTurn

_MUCH_TEXT = 20_000
"""Minimum characters of the message, the conversation and what was recalled for which a thread does the work."""

log = structlog.get_logger(__name__)


async def history(
    state: ConversationState,
    runtime: Runtime[OpenTurn],
    *,
    sources: Sequence[Source[Any]],
    conversation: Conversation,
    topics: TopicArchive,
    models: ChatModels,
    tools: ToolRegistry,
    estimators: TokenEstimators,
    changes: Changes,
) -> ConversationState:
    """Read what the prompt shows of the conversation, of memory, and of the days that the message asks about."""
    turn = runtime.context
    # A model with tools carries plain forms out itself; for any other model the service does so before asking it.
    acts = models.takes_tools(turn.model)
    planned = [] if acts else await planned_forms(state.get("plain_forms", []), turn, changes)
    asked = state.get("plain_promise")
    promised = promised_change(turn, asked) if asked and not acts else None
    own = await tools.of_user(turn.tenant_id, turn.user_id)
    offered = own.with_features(state["features"], temporary=not turn.stored, expert=turn.expert)
    draft = PromptDraft(
        turn,
        estimators.of(turn.model or ""),
        frozenset(state["features"]),
        tools=offered.described if acts else "",
        reference=state.get("time_reference"),
        memory_plan=planned,
        promised=promised,
    )
    within_s = allowance(turn, state).besides_answer_s
    await gather(sources, draft, conversation=conversation, topics=topics, within_s=within_s)
    update = _update(draft)
    if planned:
        update["memory_plan"] = planned
        update["memory_changes"] = [each.change for each in planned]
    days = update.get("asked_days")
    if days and draft.reference:
        nothing_said = days["known"] and not days["summaries"] and not days["said"]
        nothing_else = draft.reference["plain"] and not state.get("quick_tools") and not turn.images
        nothing_else = nothing_else and "response_format" not in turn.input.get("sampling", {})
        update["told_without_model"] = nothing_said and nothing_else and not planned
    recalled = draft.of(RecallSource)
    if recalled and recalled.loading_milliseconds >= 1:
        update["timings"] = {"memory_loading_ms": recalled.loading_milliseconds}
    if recalled and recalled.message_vector is not None and state.get("use_retrieval"):
        update["message_vector"] = recalled.message_vector.tolist()
    return update


async def planned_forms(forms: Sequence[PlainForm], turn: OpenTurn, changes: Changes) -> list[PlannedChange]:
    """Return the changes of memory that plain forms of the message ask for; without such forms nothing is read."""
    return [await plan_form(changes.planner, change_request(turn), form) for form in forms]


def change_request(turn: OpenTurn) -> ChangeRequest:
    """Return for whom, and by which message, the turn changes memory."""
    return ChangeRequest.of_turn(turn, "user", language_of([turn.message]))


def _update(draft: PromptDraft) -> ConversationState:
    """Return the state update: the sections, and what other nodes read."""
    days = section_named(draft.sections, "days")
    update = ConversationState(
        sections=draft.sections,
        history=draft.history,
        epoch=draft.epoch,
        context_budget=draft.budget,
        prompt_language=draft.language,
        context_filled=draft.filled,
        summary_due=draft.summary_due,
        not_recalled=sorted(draft.excluded | draft.without),
    )
    if days:
        update["asked_days"] = days.data
    if draft.degraded:
        update["degraded"] = draft.degraded
    return update


async def gather(
    sources: Sequence[Source[Any]],
    draft: PromptDraft,
    *,
    conversation: Conversation,
    topics: TopicArchive,
    within_s: float | None = None,
) -> None:
    """Load and select; sources that fail or are late are left out and named in `degraded`.

    If the conversation is full, topics are archived first.

    Args:
        sources: Sources of the sections, in order.
        draft: The prompt that they are loaded for and added to.
        conversation: Reads the messages.
        topics: Archives topics.
        within_s: Maximum seconds for a source; None = as each source says.

    Raises:
        DatabaseUnavailable: The conversation cannot be read.
    """
    loading = [source for source in sources if source.loads]
    data = draft.data
    data |= {type(source): source.when_off() for source in loading if not source.is_on(draft)}
    try:
        async with asyncio.TaskGroup() as group:
            draft.reading = group.create_task(conversation.load(draft))
            tasks = {
                type(source): group.create_task(_load(source, draft, within_s))
                for source in loading
                if type(source) not in data
            }
    except ExceptionGroup as failed:  # the graph handles the error itself and retries
        raise failed.exceptions[0] from None
    data |= {kind: task.result() for kind, task in tasks.items()}
    data[Conversation] = draft.reading.result()

    def show() -> None:
        for source in sources:
            source.revise(draft)
        conversation.show(draft)

    await _beside(draft, show)
    if draft.filled >= 1:
        if await topics.archive_in_time(draft.turn.tenant_id, draft.turn.conversation_id):
            data[Conversation] = await conversation.load(draft)
            await _beside(draft, show)
        else:
            draft.went_without("topics")
    await _beside(draft, partial(select_all, sources, draft))


async def _beside(draft: PromptDraft, work: Callable[[], None]) -> None:
    """Do some work on what was loaded, in a thread if there is much text."""
    fetched: StoredConversation = draft.data[Conversation]
    characters = len(draft.turn.message) + sum(len(each["content"]) for each in fetched.history)
    if (recalled := draft.of(RecallSource)) is not None:
        characters += sum(len(unit.text) for unit in recalled.units.values())
    await beside_the_loop(work, characters=characters, most=_MUCH_TEXT)


def select_all(sources: Sequence[Source[Any]], draft: PromptDraft) -> None:
    """Let each active source select its sections, in order."""
    for source in sources:
        if source.is_on(draft):
            draft.sections += source.select(draft)


async def _load(source: Source[Any], draft: PromptDraft, within_s: float | None) -> Any:
    """Return what the source loads; None if it fails."""
    # The prompt waits for sources that it cannot do without.
    limits = [source.within_s] if source.required else [source.within_s, within_s]
    try:
        async with Patience(min((each for each in limits if each is not None), default=None)):
            return await source.load(draft)
    except (Unavailable, TimeoutError) as error:
        if source.required:
            raise
        log.warning("left out of the prompt", source=source.name, error=type(error).__name__)
        draft.degraded.append(source.name)
        return None
