"""generate: one prompt, one streamed call of the model."""

from collections.abc import Mapping

from langgraph.runtime import Runtime

from services.context.speaking import speak
from services.context.strategies import USUAL, PromptStrategy
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
    handlers: Mapping[str, PromptStrategy],
) -> ConversationState:
    """Stream the answer's next piece: all of it, or what the model says before it asks for tools.

    In the graph it stands twice: as `generate_rag`, and with `handlers` as `generate_kb`, which answers as the
    routed knowledge base would have it.
    """
    strategy = handlers.get(state.get("handler") or "", USUAL)
    offers = strategy.offers_tools and state.get("tool_rounds", 0) < MOST_TOOL_ROUNDS
    return await speak(
        state,
        runtime.stream_writer,
        models=models,
        tools=tools.without(state.get("parts_off", ())) if offers else None,
        estimators=estimators,
        strategy=strategy,
    )
