"""history: what is known of this conversation."""

from uuid import UUID

from langgraph.runtime import Runtime

from services.context.prompt import ContextBudget
from services.conversations.transcript import Transcript
from state.context import TurnContext
from state.conversation import ConversationState


async def history(
    state: ConversationState, runtime: Runtime[TurnContext], *, transcript: Transcript, budget: ContextBudget
) -> ConversationState:
    """Read the completed messages before this one, the newest that fit the budget."""
    context = runtime.context
    messages, dropped = await transcript.window(
        UUID(context.tenant_id),
        UUID(context.conversation_id),
        before=UUID(state["user_message_id"]),
        budget=budget.for_history(state["system_prompt"]),
    )
    return {"history": messages, "history_dropped": dropped}
