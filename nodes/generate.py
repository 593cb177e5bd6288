"""generate: one prompt, one streamed call of the model."""

from langgraph.runtime import Runtime

from services.context.speaking import speak
from services.llm.chat_models import ChatModels
from services.llm.token_estimates import TokenEstimators
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState

MOST_TOOL_ROUNDS = 5
"""After so many rounds of tools the model is offered none, so that it answers."""


async def generate(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    models: ChatModels,
    tools: ToolRegistry,
    estimators: TokenEstimators,
) -> ConversationState:
    """Stream the answer's next piece: all of it, or what the model says before it asks for tools."""
    offered = tools if state.get("tool_rounds", 0) < MOST_TOOL_ROUNDS else None
    return await speak(state, runtime.stream_writer, models=models, tools=offered, estimators=estimators)
