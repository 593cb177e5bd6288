"""history: what is known of this conversation, and of the user; all of it is read at the same time."""

import asyncio
from uuid import UUID

import structlog
from langgraph.runtime import Runtime

from services.context.acquaintances import Acquaintances
from services.context.days_shown import shown_days
from services.context.parts import is_on
from services.context.persona import STRANGER, Acquaintance
from services.context.reading import Asked, ConversationReader, ShownConversation
from services.context.recalled import Memories
from services.context.time_note import time_note
from services.errors import Unavailable
from services.llm.language import language_of
from services.llm.token_estimates import TokenEstimator, TokenEstimators
from services.llm.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD
from services.memory.blocks import Owner
from services.memory.core import CoreMemory
from services.memory.index import Scope
from services.memory.recall import TurnAsked
from services.summaries.past_days import DaysAsked, PastDays
from services.summaries.topics import TopicArchive
from services.time_reference.local_days import bounds
from services.tone.weighing import tone_of
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState
from state.prompt import CoreMemorySections, Part

log = structlog.get_logger(__name__)

_WITHIN_S = 2.0
"""The turn goes on without what takes longer."""
_OF_THE_USER: tuple[Part, ...] = ("tone", "persona_card", "time")
"""The parts that need to know how the user and the expert know each other."""


async def history(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    conversations: ConversationReader,
    core_memory: CoreMemory,
    memories: Memories,
    acquaintances: Acquaintances,
    days: PastDays,
    topics: TopicArchive,
    tools: ToolRegistry,
    estimators: TokenEstimators,
) -> ConversationState:
    """Read what the prompt shows of the conversation, core memory, past episodes that bear on the message, the
    days that it asks about, and how the user has sounded; and say how they sound now.

    Where the conversation is full, topics are archived first.
    """
    context = runtime.context
    tokens = estimators.of(state.get("model") or "")
    asked = _asked(state, context, tools.without(state.get("parts_off", ())), tokens)
    owner = Owner(asked.tenant_id, UUID(context.user_id), UUID(context.expert_id))
    days_asked = _days_asked(state, context, owner)
    newest = state.get("core_memory_generation") if is_on(state, "core_memory") else 0
    try:
        async with asyncio.TaskGroup() as group:
            fetching = group.create_task(conversations.fetch(asked))
            remembering = group.create_task(_core_memory(core_memory, owner, newest))
            recalling = group.create_task(memories.recall(_sought(state, context, owner)))
            looking = group.create_task(days.for_turn(days_asked))
            acquainting = group.create_task(_acquaintance(acquaintances, state, owner, asked.conversation_id))
    except ExceptionGroup as failed:  # the graph knows the error itself, and tries again
        raise failed.exceptions[0] from None
    core, recalled, acquaintance = remembering.result(), recalling.result(), acquainting.result()
    found = looking.result()
    degraded = _missing({"core_memory": core, "tone": acquaintance})
    shown = conversations.show(asked, fetching.result(), tokens, core, acquaintance)
    if shown.full:
        if await topics.archive_in_time(asked.tenant_id, asked.conversation_id):
            shown = await conversations.read(asked, tokens, core, acquaintance)
        else:
            degraded.append("topics")
    if found and not found.known:
        degraded.append("daily_summaries")
    update = _update(shown, core, degraded + list(recalled.degraded))
    update |= _present(state, acquaintance or STRANGER, context.timezone)
    if recalled.message_vector is not None and (state.get("route_undecided") or state.get("use_retrieval")):
        update["message_vector"] = list(recalled.message_vector)
    ids = {message["message_id"] for message in shown.history}
    if days_asked and found:
        told = shown_days(days_asked, found, recalled, tokens, most_tokens=days.most_tokens)
        nothing_else = days_asked.reference["plain"] and not state.get("quick_tools") and not state.get("images")
        update["asked_days"], update["told_without_model"] = told, found.is_empty and nothing_else
        ids |= {said["message_id"] for said in told["said"]}
    if recalled.queries:
        known = {section: block["content"] for section, block in (core or {}).items()}
        update["episodic_memory"], update["recall"] = memories.choose(
            recalled, shown=ids, core_memory=known, tokens=tokens, timezone=context.timezone
        )
    return update


def _missing(read: dict[str, object]) -> list[str]:
    return [name for name, found in read.items() if found is None]


def _present(state: ConversationState, known: Acquaintance, timezone: str) -> ConversationState:
    """How the user sounds now, when they were here before, and what is said of the present time."""
    message, note = state["message"], ""
    if is_on(state, "time"):
        note = time_note(state["now"], timezone, known.last_visit, language_of([message]))
    tone = tone_of(message, known.earlier) if is_on(state, "tone") else None
    return ConversationState(tone=tone, last_visit=known.last_visit, time_note=note)


async def _acquaintance(
    acquaintances: Acquaintances, state: ConversationState, owner: Owner, conversation_id: UUID
) -> Acquaintance | None:
    if not any(is_on(state, part) for part in _OF_THE_USER):
        return STRANGER
    return await acquaintances.for_turn(owner, conversation_id)


def _asked(state: ConversationState, context: TurnContext, tools: ToolRegistry, tokens: TokenEstimator) -> Asked:
    return Asked(
        tenant_id=UUID(context.tenant_id),
        conversation_id=UUID(context.conversation_id),
        before=UUID(state["user_message_id"]),
        policy=state["context_policy"],
        fixed_tokens=tokens.count(state["system_prompt"]) + MESSAGE_OVERHEAD + tokens.count(tools.described),
        message_tokens=tokens.count(state["message"])
        + MESSAGE_OVERHEAD
        + IMAGE_TOKENS * len(state.get("images", [])),
        now=state["now"],
        begins=state.get("begins", False),
        persona=is_on(state, "persona_card"),
        language=language_of([state["message"]]),
        most_tokens=state.get("max_context_tokens"),
    )


def _sought(state: ConversationState, context: TurnContext, owner: Owner) -> TurnAsked | None:
    if not state.get("remembers", True) or not is_on(state, "recall"):
        return None
    reference = state.get("time_reference")
    since, until = None, None
    if reference and reference["start_date"] and reference["end_date"]:
        since, until = bounds(reference["start_date"], reference["end_date"], context.timezone)
    return TurnAsked(
        scope=Scope(owner.tenant_id, owner.user_id, owner.expert_id),
        conversation_id=UUID(context.conversation_id),
        message_id=UUID(state["user_message_id"]),
        message=state["message"],
        now=state["now"],
        timezone=context.timezone,
        since=since,
        until=until,
    )


def _days_asked(state: ConversationState, context: TurnContext, owner: Owner) -> DaysAsked | None:
    reference = state.get("time_reference")
    # What was said a moment ago is in the conversation itself, unless that has only begun.
    if reference is None or (reference["kind"] == "just_now" and not state.get("begins", False)):
        return None
    return DaysAsked(
        owner=owner,
        conversation_id=UUID(context.conversation_id),
        message_id=UUID(state["user_message_id"]),
        reference=reference,
        message=state["message"],
        now=state["now"],
        timezone=context.timezone,
    )


async def _core_memory(core_memory: CoreMemory, owner: Owner, at_least: int | None) -> CoreMemorySections | None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await core_memory.for_turn(owner, at_least)
    except (Unavailable, TimeoutError) as error:
        log.warning("core memory is left out", user_id=str(owner.user_id), error=type(error).__name__)
        return None


def _update(shown: ShownConversation, core: CoreMemorySections | None, degraded: list[str]) -> ConversationState:
    update = ConversationState(
        history=shown.history,
        epoch=shown.epoch,
        core_memory=core,
        core_memory_changes=shown.core_memory_changes,
        persona_card=shown.epoch["persona_card"] if core is not None else "",
        context_budget=shown.budget,
        after_turn=shown.jobs,
    )
    if degraded:
        update["degraded"] = degraded
    return update
