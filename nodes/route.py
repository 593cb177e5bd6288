"""route: where the message goes."""

import time

from langgraph.runtime import Runtime

from state.context import TurnContext
from state.conversation import ConversationState, RouteDecision


async def route(state: ConversationState, runtime: Runtime[TurnContext]) -> ConversationState:
    """Route to the knowledge base that the caller named, or else to general conversation."""
    begun = time.perf_counter()
    prefix = state.get("requested_kb_prefix")
    if prefix:
        decision = RouteDecision(
            kb_prefix=prefix,
            worker_name=prefix,
            confidence=1.0,
            method="explicit",
            reason="the caller named the knowledge base",
        )
    else:
        decision = RouteDecision(
            kb_prefix=None,
            worker_name="general",
            confidence=1.0,
            method="default",
            reason="no knowledge base was asked for",
        )
    runtime.stream_writer({"status": "route_decision", "content": decision})
    return {
        "route_decision": decision,
        "kb_prefix": decision["kb_prefix"],
        "worker_name": decision["worker_name"],
        "use_retrieval": decision["kb_prefix"] is not None,
        "routing_ms": round((time.perf_counter() - begun) * 1000, 3),
    }
