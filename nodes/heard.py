"""heard: takes the answer that another agent has given; no model is asked."""

from langgraph.runtime import Runtime

from nodes.no_record import unasked
from state.conversation import ConversationState
from state.turn import OpenTurn


async def heard(
    state: ConversationState,
    runtime: Runtime[OpenTurn],  # noqa: ARG001 — as every node
) -> ConversationState:
    """Return the answer that came with the message; for an empty answer no message is stored."""
    return unasked(state, state["answer"])
