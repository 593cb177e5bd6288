"""route: decides where the message goes and what it asks for: past days, tools, a change of memory."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from langgraph.runtime import Runtime

from services.context.features import features_of_turn
from services.knowledge.routing import KnowledgeRouting, Routing
from services.memory.plain_forms import plain_forms
from services.platform.threads import beside_the_loop
from services.time_reference.detect import detect
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState
from state.prompt import Feature

_LONG = 1_000
"""Characters of a message."""


async def route(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    routing: KnowledgeRouting,
    tools: ToolRegistry,
    features: Sequence[Feature],
) -> ConversationState:
    """Route by rules: to the knowledge base that the caller named, or whose words the message has, or to none.

    Tools that the message plainly asks for are called without a model deciding; questions about an image are not
    plain. `features` are those that the settings switch on; the expert may switch some off. If rules are not
    certain of a knowledge base, `match` decides once the message is embedded.
    """
    message, timezone, now = state["message"], runtime.context.timezone, state["now"]
    on = features_of_turn(features, state.get("features_off", ()))
    reference = (
        await beside_the_loop(partial(detect, message, timezone, now), characters=len(message), most=_LONG)
        if "days" in on
        else None
    )

    def besides(sentence: str) -> bool:
        """Return whether a part of the message asks about past conversation, and needs no tool."""
        asked = detect(sentence, timezone, now) if reference else None
        return asked is not None and asked["plain"]

    calls = (
        tools.with_features(on).quick_calls(message, besides)
        if "quick_tools" in on and not state.get("images")
        else []
    )
    found = await routing.by_rules(
        UUID(runtime.context.tenant_id),
        state.get("knowledge_version"),
        message,
        requested=state.get("requested_kb_prefix"),
        open_question="knowledge" in on and not calls and not (reference and reference["plain"]),
    )
    if not found.undecided:
        runtime.stream_writer({"status": "route_decision", "content": found.decision})
    update: ConversationState = {
        **routed(found),
        "features": on,
        "time_reference": reference,
        "quick_tools": calls,
    }
    if not state.get("unstored"):
        update["plain_forms"] = plain_forms(message)
    return update


def routed(found: Routing) -> ConversationState:
    """Return the state update for a decision."""
    update = ConversationState(
        route_decision=found.decision,
        kb_prefix=found.decision["kb_prefix"],
        use_retrieval=found.decision["kb_prefix"] is not None,
        handler=found.base.handler if found.base else None,
        kb_instructions=found.base.system_prompt if found.base else "",
        route_undecided=found.undecided,
    )
    if found.degraded:
        update["degraded"] = list(found.degraded)
    return update
