"""match: finds the knowledge base closest to the message where rules were not certain."""

from uuid import UUID

from langgraph.runtime import Runtime

from nodes.route import routed
from services.knowledge.message_intent import followed
from services.knowledge.routing import KnowledgeRouting
from state.context import TurnContext
from state.conversation import ConversationState


async def match(
    state: ConversationState, runtime: Runtime[TurnContext], *, routing: KnowledgeRouting
) -> ConversationState:
    """Decide what `route` left open, with the embedding that recall made of the message."""
    tenant_id, version = UUID(runtime.context.tenant_id), state.get("knowledge_version")
    message = state["message"]
    before = followed(message, state.get("history", []))
    found = await routing.by_similarity(tenant_id, version, message, state.get("message_vector"), before=before)
    runtime.stream_writer({"status": "route_decision", "content": found.decision})
    return routed(found)
