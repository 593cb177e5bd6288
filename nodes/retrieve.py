"""retrieve: passages of the knowledge base that the message was routed to."""

import time
from uuid import UUID

from langgraph.runtime import Runtime

from services.knowledge.search import KnowledgeSearch
from state.context import TurnContext
from state.conversation import ConversationState


async def retrieve(
    state: ConversationState, runtime: Runtime[TurnContext], *, knowledge: KnowledgeSearch
) -> ConversationState:
    """Search the routed knowledge base with the user's message."""
    begun = time.perf_counter()
    prefix = state.get("kb_prefix")
    passages = await knowledge.search(UUID(runtime.context.tenant_id), prefix, state["message"]) if prefix else []
    return {
        "retrieval_results": passages,
        "retrieval_ms": round((time.perf_counter() - begun) * 1000, 3),
    }
