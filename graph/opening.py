"""Open a turn: from what a caller sends to the state and the context with which the graph begins."""

import time
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.conversations.turns import NewTurn, OpenTurn, Turns
from state.context import TurnContext
from state.conversation import ConversationState, TurnInput

LONGEST_TURN_S = 600.0


@dataclass(frozen=True)
class TurnRequest:
    """What a caller sends, checked: the graph's input, and whose it is."""

    tenant_id: UUID
    input: TurnInput


async def open_turn(turns: Turns, request: TurnRequest) -> OpenTurn:
    """Store the request's message and open its turn."""
    asked = request.input
    return await turns.open(
        NewTurn(
            tenant_id=request.tenant_id,
            external_user_id=asked["user_id"],
            session_key=asked["session_id"],
            content=asked["message"],
            images=asked.get("images", ()),
            expert=asked.get("expert"),
            timezone=asked.get("timezone"),
            locale=asked.get("locale"),
        )
    )


def initial_state(turn: OpenTurn, request: TurnInput, now: datetime) -> ConversationState:
    """The state with which a turn begins."""
    opened = ConversationState(
        conversation_id=str(turn.conversation_id),
        turn_id=str(turn.turn_id),
        user_message_id=str(turn.user_message_id),
        answer_message_id=str(turn.answer_message_id),
        system_prompt=turn.system_prompt,
        model=turn.model,
        now=now,
    )
    # What was opened stands, whatever a caller's input may name.
    return ConversationState({**request, **opened})


def turn_context(turn: OpenTurn, *, debug: bool) -> TurnContext:
    """Whose turn it is."""
    return TurnContext(
        tenant_id=str(turn.tenant_id),
        user_id=str(turn.user_id),
        conversation_id=str(turn.conversation_id),
        turn_id=str(turn.turn_id),
        locale=turn.locale or "",
        timezone=turn.timezone,
        debug=debug,
        deadline=time.time() + LONGEST_TURN_S,
    )
