"""route: decides which knowledge bases are searched, and finds what the message asks for: past days, tools, a
change of memory."""

from collections.abc import Sequence
from functools import partial

from langgraph.runtime import Runtime

from services.memory.reading.plain_forms import plain_forms
from services.platform.patience import beside_the_loop
from services.promises.plain_forms import plain_promise
from services.promises.quiet import plain_quiet
from services.text.questions import is_small_talk
from services.time_reference.detect import detect
from services.tools.registry import ToolRegistry
from state.conversation import ConversationState, RouteDecision
from state.prompt import Feature
from state.turn import OpenTurn

_LONG = 1_000
"""Minimum characters of a message that a thread reads."""


async def route(
    state: ConversationState,  # noqa: ARG001 — as every node
    runtime: Runtime[OpenTurn],
    *,
    tools: ToolRegistry,
    features: Sequence[Feature],
) -> ConversationState:
    """Decide whether knowledge bases are searched: the one that the caller named, all of them, or none.

    A tool that the message plainly asks for is called without asking a model; questions about an image are never
    plain. `features` are those that the settings switch on; the expert may switch some off. When all bases are
    searched, `retrieve` decides by their passages which one answers.
    """
    turn = runtime.context
    message, timezone, now = turn.message, turn.timezone, turn.now
    on = [feature for feature in features if feature not in turn.parts_off]
    if turn.is_heard:  # no prompt is made
        on = [feature for feature in on if feature == "memory_filing"]
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
        tools.with_features(on).quick_calls(message, besides) if "quick_tools" in on and not turn.images else []
    )
    requested = turn.input.get("requested_kb_prefix")
    is_open = (
        "knowledge" in on and not calls and not (reference and reference["plain"]) and not is_small_talk(message)
    )
    searches = (requested is not None and not turn.is_heard) or (is_open and turn.has_knowledge is not False)
    decision = explicit(requested) if requested is not None else general("no knowledge base is asked")
    if not searches:  # otherwise `retrieve` tells it
        runtime.stream_writer({"status": "route_decision", "content": decision})
    update: ConversationState = {
        "route_decision": decision,
        "use_retrieval": searches,
        "handler": None,
        "kb_instructions": "",
        "features": on,
        "time_reference": reference,
        "quick_tools": calls,
    }
    if turn.is_heard:
        update["answer"] = turn.input["answer"]
    if turn.stored:
        update["plain_forms"] = [] if turn.speaker else plain_forms(message)
        asked = None if turn.speaker else plain_promise(message, now, timezone) or plain_quiet(message)
        if asked:
            update["plain_promise"] = asked
    return update


def general(reason: str) -> RouteDecision:
    """Return the decision for no knowledge base."""
    return RouteDecision(kb_prefix=None, worker_name="general", confidence=1.0, method="default", reason=reason)


def explicit(prefix: str, handler: str | None = None) -> RouteDecision:
    """Return the decision for the base that the caller named."""
    return RouteDecision(
        kb_prefix=prefix,
        worker_name=handler or prefix,
        confidence=1.0,
        method="explicit",
        reason="the caller named the knowledge base",
    )
