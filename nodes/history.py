"""history: what is known of this conversation."""

from uuid import UUID

from langgraph.runtime import Runtime

from services.context.reading import Asked, ConversationReader, ShownConversation
from services.llm.token_estimates import TokenEstimators
from services.llm.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD
from services.summaries.topics import TopicArchive
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState


async def history(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    conversations: ConversationReader,
    topics: TopicArchive,
    tools: ToolRegistry,
    estimators: TokenEstimators,
) -> ConversationState:
    """Read what the prompt shows of the conversation; where it is full, archive topics first."""
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
    shown = await conversations.read(asked, tokens)
    degraded = []
    if shown.full:
        if await topics.archive_in_time(asked.tenant_id, asked.conversation_id):
            shown = await conversations.read(asked, tokens)
        else:
            degraded.append("topics")
    return _update(shown, degraded)


def _update(shown: ShownConversation, degraded: list[str]) -> ConversationState:
    update = ConversationState(
        history=shown.history, epoch=shown.epoch, context_budget=shown.budget, after_turn=shown.jobs
    )
    if degraded:
        update["degraded"] = degraded
    return update
