"""Proposals for changes of memory that rest on foreign words: they wait for the user."""

from typing import Any

from langgraph.prebuilt import ToolRuntime

from services.memory.proposals import EditKind, Proposals
from services.memory.trust import Read, rests_on_user
from services.tools.actor import editing_of
from state.context import TurnContext


async def proposed(
    proposals: Proposals | None,
    runtime: "ToolRuntime[TurnContext, Any]",
    kind: EditKind,
    text: str,
    replaces: str = "",
) -> str:
    """Make a change a proposal unless the user's own words ask for it; return the note for the model, or nothing.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    context = runtime.context
    read = Read(context.said, context.foreign, context.remembered)
    if proposals is None or (
        rests_on_user(text, read, removes=kind == "forget")
        and (not replaces or rests_on_user(replaces, read, removes=True))
    ):
        return ""
    await proposals.add(editing_of(runtime), kind, text, replaces)
    return (
        "Nothing was changed: these are not the user's own words. It waits for the user's consent; tell them so."
    )
