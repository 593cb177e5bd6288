"""Changes of memory that rest on foreign words: they wait for the user."""

from collections.abc import Sequence
from typing import Any

from langgraph.prebuilt import ToolRuntime

from services.memory.proposals import EditKind, Proposals
from services.memory.trust import Read, asks_to_remove, rests_on_user
from services.text.language import Language, language_of
from services.tools.actor import request_of
from state.context import TurnContext

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
