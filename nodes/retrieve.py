"""retrieve: finds passages in the knowledge bases that the message was routed to."""

import asyncio
from collections.abc import Sequence
from itertools import islice, zip_longest
from uuid import UUID

import structlog
from langgraph.runtime import Runtime

from services.errors import Unavailable
from services.knowledge.message_intent import followed
from services.knowledge.search import Found, KnowledgeSearch
from state.context import TurnContext
from state.conversation import ConversationState
from state.prompt import Passage

_MOST_PASSAGES = 8
LEAST_PASSAGES, LEAST_BESIDE = 3, 1
"""Passages shown of the base that probably has the answer, and of each beside it: the asker may have other words
for it than the document."""

log = structlog.get_logger(__name__)


async def retrieve(
    state: ConversationState, runtime: Runtime[TurnContext], *, knowledge: KnowledgeSearch
) -> ConversationState:
    """Search the routed knowledge bases with the user's message, all at once; leave out those that do not answer.

    A follow-up message is searched together with the one before it.
    """
    before = followed(state["message"], state.get("history", []))
    query = f"{before}\n{state['message']}" if before else state["message"]

    async def search(prefix: str, least: int) -> Found:
        try:
            return await knowledge.search(
                UUID(runtime.context.tenant_id),
                prefix,
                query,
                vector=None if before else state.get("message_vector"),
                agent_type=state.get("agent_type", "hybrid_agent"),
                limit=_MOST_PASSAGES,
                least=least,
            )
        except Unavailable as error:
            log.warning("knowledge was left out", reason=error.message)
            return Found(degraded=["knowledge"])

    found = await asyncio.gather(*(search(prefix, least) for prefix, least in _asked(state)))
    return {
        "retrieval_results": together([each.passages for each in found]),
        "degraded": list(dict.fromkeys(source for each in found for source in each.degraded)),
    }


def _asked(state: ConversationState) -> list[tuple[str, int]]:
    """The bases to search, and how many passages of each are shown in any case; the caller's choice says nothing
    of whether the base has the answer."""
    prefix, decision = state.get("kb_prefix"), state.get("route_decision")
    if not prefix:
        return []
    probable = decision is not None and decision["method"] != "explicit"
    also = decision.get("also", []) if decision is not None else []
    return [(prefix, LEAST_PASSAGES if probable else 0), *((each, LEAST_BESIDE) for each in also)]


def together(found: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Interleave the passages: the best of each base first, starting with the main base, then the next of each."""
    passages = (passage for each in zip_longest(*found) for passage in each if passage is not None)
    return list(islice(passages, _MOST_PASSAGES))
