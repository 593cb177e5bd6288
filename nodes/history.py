"""history: what is known of this conversation, and of the user; all of it is read at the same time."""

import asyncio
from uuid import UUID

import structlog
from langgraph.runtime import Runtime

from services.context.reading import Asked, ConversationReader, FetchedConversation, ShownConversation
from services.context.recalled import Memories
from services.errors import Unavailable
from services.llm.token_estimates import TokenEstimators
from services.llm.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD
from services.memory.blocks import Owner
from services.memory.core import CoreMemory
from services.memory.index import Scope
from services.memory.recall import RecallResult, TurnAsked
from services.summaries.topics import TopicArchive
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState, CoreMemorySections

log = structlog.get_logger(__name__)

_CORE_MEMORY_WITHIN_S = 2.0
"""The turn goes on without what takes longer."""


async def history(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    conversations: ConversationReader,
    core_memory: CoreMemory,
    memories: Memories,
    topics: TopicArchive,
    tools: ToolRegistry,
    estimators: TokenEstimators,
) -> ConversationState:
    """Read what the prompt shows of the conversation, core memory, and past episodes that bear on the message.

    Where the conversation is full, topics are archived first.
    """
    context = runtime.context
    tokens = estimators.of(state.get("model") or "")
    asked = Asked(
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
        most_tokens=state.get("max_context_tokens"),
    )
    owner = Owner(asked.tenant_id, UUID(context.user_id), UUID(context.expert_id))
    sought = _sought(state, context, owner) if state.get("remembers", True) else None
    fetched, core, recalled = await _read(
        conversations, asked, core_memory, owner, state.get("core_memory_generation"), memories, sought
    )
    shown = conversations.show(asked, fetched, tokens, core)
    degraded = [] if core is not None else ["core_memory"]
    if shown.full:
        if await topics.archive_in_time(asked.tenant_id, asked.conversation_id):
            shown = await conversations.read(asked, tokens, core)
        else:
            degraded.append("topics")
    update = _update(shown, core, degraded + list(recalled.degraded))
    if recalled.queries:
        known = {section: block["content"] for section, block in (core or {}).items()}
        ids = {message["message_id"] for message in shown.history}
        update["episodic_memory"], update["recall"] = memories.choose(
            recalled, shown=ids, core_memory=known, tokens=tokens, timezone=context.timezone
        )
    return update


def _sought(state: ConversationState, context: TurnContext, owner: Owner) -> TurnAsked:
    return TurnAsked(
        scope=Scope(owner.tenant_id, owner.user_id, owner.expert_id),
        conversation_id=UUID(context.conversation_id),
        message_id=UUID(state["user_message_id"]),
        message=state["message"],
        now=state["now"],
        timezone=context.timezone,
    )


async def _read(
    conversations: ConversationReader,
    asked: Asked,
    core_memory: CoreMemory,
    owner: Owner,
    at_least: int | None,
    memories: Memories,
    sought: TurnAsked | None,
) -> tuple[FetchedConversation, CoreMemorySections | None, RecallResult]:
    """All at the same time; without the conversation there is no turn, without the others there is."""
    try:
        async with asyncio.TaskGroup() as group:
            fetching = group.create_task(conversations.fetch(asked))
            remembering = group.create_task(_core_memory(core_memory, owner, at_least))
            recalling = group.create_task(memories.recall(sought))
    except ExceptionGroup as failed:  # the graph knows the error itself, and tries again
        raise failed.exceptions[0] from None
    return fetching.result(), remembering.result(), recalling.result()


async def _core_memory(core_memory: CoreMemory, owner: Owner, at_least: int | None) -> CoreMemorySections | None:
    try:
        async with asyncio.timeout(_CORE_MEMORY_WITHIN_S):
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
        context_budget=shown.budget,
        after_turn=shown.jobs,
    )
    if degraded:
        update["degraded"] = degraded
    return update
