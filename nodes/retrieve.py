"""retrieve: passages of the knowledge base that the message was routed to."""

from uuid import UUID

import structlog
from langgraph.runtime import Runtime

from services.errors import Unavailable
from services.knowledge.following import followed
from services.knowledge.search import Found, KnowledgeSearch
from state.context import TurnContext
from state.conversation import ConversationState

log = structlog.get_logger(__name__)


async def retrieve(
    state: ConversationState, runtime: Runtime[TurnContext], *, knowledge: KnowledgeSearch
) -> ConversationState:
    """Search the routed knowledge base with the user's message; what does not answer is left out.

    A message that goes on from the one before is searched for together with that.
    """
    found = Found()
    before = followed(state["message"], state.get("history", []))
    if prefix := state.get("kb_prefix"):
        try:
            found = await knowledge.search(
                UUID(runtime.context.tenant_id),
                prefix,
                f"{before}\n{state['message']}" if before else state["message"],
                vector=None if before else state.get("message_vector"),
                agent_type=state.get("agent_type", "hybrid_agent"),
            )
        except Unavailable as error:
            log.warning("knowledge was left out", reason=error.message)
            found = Found(degraded=["knowledge"])
    return {
        "retrieval_results": found.passages,
        "degraded": found.degraded,
    }
