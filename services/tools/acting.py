"""On whose behalf a tool acts, and why: told by the run's context alone."""

from typing import Any
from uuid import UUID

from langgraph.prebuilt import ToolRuntime

from services.memory.blocks import Owner
from services.memory.operations import Trigger
from state.context import TurnContext


def owner_of(context: TurnContext) -> Owner:
    """Whose memory the turn may read and change: that of its user with its expert."""
    return Owner(UUID(context.tenant_id), UUID(context.user_id), UUID(context.expert_id))


def trigger_of(runtime: "ToolRuntime[TurnContext, Any]") -> Trigger:
    """What the log of operations says of who acts and why."""
    context = runtime.context
    return Trigger(
        "model",
        UUID(context.user_message_id),
        UUID(context.conversation_id),
        UUID(context.turn_id),
    )
