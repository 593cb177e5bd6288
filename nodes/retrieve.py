"""retrieve: finds passages in the knowledge bases, and decides which base answers."""

import structlog
from langgraph.runtime import Runtime

from nodes.route import explicit, general
from services.errors import Unavailable
from services.knowledge.search import Found, KnowledgeSearch
from services.search.queries import Utterance, make_query
from state.conversation import ConversationState, RouteDecision
from state.turn import OpenTurn

_MOST_PASSAGES = 8

log = structlog.get_logger(__name__)


async def retrieve(
    state: ConversationState, runtime: Runtime[OpenTurn], *, knowledge: KnowledgeSearch
) -> ConversationState:
    """Search the base that the caller named, or all of them, with the user's message.

    A question that leaves its subject open is searched together with the message before it. The base of the best
    passage answers, so its operator's instructions apply.
    """
    turn = runtime.context
    requested = turn.input.get("requested_kb_prefix")
    query, alone = _sought(turn.message, state)
    try:
        found = await knowledge.search(
            turn.tenant_id,
            requested,
            query,
            conversation_id=turn.conversation_id,
            vector=state.get("message_vector") if alone else None,
            agent_type=turn.input.get("agent_type", "hybrid_agent"),
            limit=_MOST_PASSAGES,
        )
    except Unavailable as error:
        log.warning("knowledge was left out", reason=error.message)
        found = Found(degraded=["knowledge"])
    decision = _decision(requested, found)
    runtime.stream_writer({"status": "route_decision", "content": decision})
    return {
        "route_decision": decision,
        "handler": found.base.handler if found.base else None,
        "kb_instructions": found.base.system_prompt if found.base else "",
        "retrieval_results": found.passages,
        "degraded": found.degraded,
    }


def _sought(message: str, state: ConversationState) -> tuple[str, bool]:
    """Return the text to search for, and whether it is the message alone."""
    said = [
        Utterance(each["role"], each["content"]) for each in state.get("history", []) if each["role"] == "user"
    ]
    query = make_query(message, said[-1:])
    follows = query is not None and query.asks and bool(query.context)
    return (f"{said[-1].text}\n{message}", False) if follows else (message, True)


def _decision(requested: str | None, found: Found) -> RouteDecision:
    base = found.base
    if requested is not None:
        return explicit(requested, base.handler if base else None)
    if base is None or not found.passages:
        return general("no passage of a knowledge base answers the message")
    best = found.passages[0]
    decision = RouteDecision(
        kb_prefix=base.prefix,
        worker_name=base.handler or ("documents" if base.of_conversation else base.prefix),
        confidence=round(best["score"], 3),
        method="similarity",
        reason="its passages answer the message best",
    )
    others = dict.fromkeys(each["kb_prefix"] for each in found.passages if each["kb_prefix"] != base.prefix)
    if others:
        decision["also"] = list(others)
    return decision
