"""For whom and in which turn a tool changes memory; what rests on foreign words waits for the user."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langgraph.prebuilt import ToolRuntime

from services.memory.archive import Archive, FoundEpisode
from services.memory.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.proposals import EditKind, Proposals
from services.memory.trust import Read, asks_to_remove, rests_on_user
from services.text.language import Language, language_of
from state.context import TurnContext


def owner_of(context: TurnContext) -> Owner:
    """The memory that the turn may read and change: its user's with its expert, in its conversation's space."""
    space_id = UUID(context.space_id) if context.space_id else None
    return Owner(UUID(context.tenant_id), UUID(context.user_id), UUID(context.expert_id), space_id)


def request_of(runtime: "ToolRuntime[TurnContext, Any]") -> ChangeRequest:
    """Return for whom, and in which turn, a tool changes memory."""
    context = runtime.context
    return ChangeRequest(
        owner_of(context),
        UUID(context.conversation_id),
        UUID(context.user_message_id),
        trigger_of(runtime),
        language_of(context.said[-1:]) if context.said else None,
    )


async def note_search(
    archive: Archive, runtime: "ToolRuntime[TurnContext, Any]", query: str, found: Sequence[FoundEpisode]
) -> None:
    """Log that the turn searched, unless it is temporary.

    Raises:
        NotFound: the user, or the conversation, was erased.
    """
    if not runtime.context.temporary:
        ids = [each.id for each in found]
        await archive.note_search(owner_of(runtime.context), query, ids, trigger_of(runtime))


def trigger_of(runtime: "ToolRuntime[TurnContext, Any]") -> Trigger:
    """The actor and the reason for the log of operations."""
    context = runtime.context
    return Trigger(
        "model",
        UUID(context.user_message_id),
        UUID(context.conversation_id),
        UUID(context.turn_id),
    )


_WAITS: dict[Language, str] = {
    "en": "Nothing was changed: these are not the user's own words. It waits as {id}; ask the user about it.",
    "zh": "没有改动：这不是用户自己说的话。已作为待确认事项 {id} 留存，请问一问用户。",
}


async def proposed(
    proposals: Proposals | None,
    runtime: "ToolRuntime[TurnContext, Any]",
    kind: EditKind,
    text: str,
    replaces: str = "",
    *,
    removes: Sequence[str] = (),
) -> str:
    """Make a change a proposal unless the user's own words ask for it; return the note for the model, or nothing.

    `removes` are the texts of the memories that would go.
    """
    context = runtime.context
    read = Read(context.said, context.foreign, context.remembered)
    rests = asks_to_remove(removes or [text], read) if kind == "forget" else rests_on_user(text, read)
    if proposals is None or rests:
        return ""
    proposal_id = await proposals.add(request_of(runtime), kind, text, replaces)
    return _WAITS[language_of([*context.said[-1:], text])].format(id=proposal_id)
