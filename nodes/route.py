"""route: where the message goes, which past it asks about, and which tools it asks for by itself."""

import time

from langgraph.runtime import Runtime

from services.time_reference.detect import detect
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState, RouteDecision


async def route(
    state: ConversationState, runtime: Runtime[TurnContext], *, tools: ToolRegistry, quick_tools: bool
) -> ConversationState:
    """Route to the knowledge base that the caller named, or else to general conversation.

    With `quick_tools`, tools for which the message asks plainly are called without a model deciding; what is
    asked of a picture is not plain.
    """
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
    message, timezone, now = state["message"], runtime.context.timezone, state["now"]
    reference = detect(message, timezone, now)

    def besides(sentence: str) -> bool:
        """Whether a part of the message asks about past conversation, and needs no tool."""
        asked = detect(sentence, timezone, now) if reference else None
        return asked is not None and asked["alone"]

    return {
        "route_decision": decision,
        "kb_prefix": decision["kb_prefix"],
        "worker_name": decision["worker_name"],
        "use_retrieval": decision["kb_prefix"] is not None,
        "time_reference": reference,
        "quick_tools": tools.quick_calls(message, besides) if quick_tools and not state.get("images") else [],
        "routing_ms": round((time.perf_counter() - begun) * 1000, 3),
    }
