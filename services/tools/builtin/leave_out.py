"""`leave_out`: the model keeps what is off the record out of memory, or lets it be remembered after all."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, Conflict
from services.memory.changes import Changes
from services.memory.reading.quotes import folded, is_quoted
from services.memory.removal.undo import Undo
from services.text.language import Language, language_of
from services.tools.actor import request_of
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.turn import OpenTurn

Quote = Annotated[str, Field(description="Words of an earlier message")]

_RELEASED: dict[Language, str] = {"en": "It is remembered again: {}.", "zh": "已恢复记住：{}。"}
_CHANGED_SINCE: dict[Language, str] = {
    "en": "Memory was changed otherwise since, so this stays off the record: {}.",
    "zh": "之后记忆有了别的改动，这些仍然不记：{}。",
}
_NONE_LEFT_OUT: dict[Language, str] = {
    "en": "Nothing is off the record here; nothing was changed.",
    "zh": "这里没有不记的内容，没有改动。",
}


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """Make the tool, if memory is on."""
    changes, undo = services.changes, services.undo
    if changes is None or undo is None:
        return None

    @service_tool
    async def leave_out(runtime: ToolRuntime[OpenTurn], quote: Quote = "", release: bool = False) -> str:
        """Keep what the user says off the record in this chat alone; release undoes it."""
        turn = runtime.context
        if turn.speaker:
            raise ToolException("Nothing was changed: another participant says this, and not the user.")
        if any(turn.read.foreign) and not is_quoted(quote, turn.message):
            raise ToolException("The message comes with text of others: quote the user's own words from it.")
        try:
            if release:
                return await _released(changes, undo, runtime, quote)
            request = request_of(runtime)
            ids = [turn.user_message_id]
            if folded(quote) not in folded(turn.message):
                found = await changes.finder.quoted(request, quote)
                ids = [UUID(found.id)] if found else []
            return (await changes.leave_out(request, ids))["summary"]
        except AnamnesisError as error:
            raise ToolException(f"Nothing was changed: {error.message}") from error

    return RegisteredTool(leave_out, timeout_s=10.0, alone=True)


async def _released(changes: Changes, undo: Undo, runtime: "ToolRuntime[OpenTurn]", quote: str) -> str:
    turn, released, stays = runtime.context, list[str](), list[str]()
    for text, operation_ids in await changes.left_out(request_of(runtime), quote):
        for operation_id in operation_ids:
            try:
                await undo.undo(turn.tenant_id, turn.input["user_id"], operation_id)
            except Conflict:
                stays.append(text)
        if text not in stays:
            released.append(text)
    return _told(released, stays, language_of([quote or turn.message]))


def _told(released: Sequence[str], stays: Sequence[str], language: Language) -> str:
    if not released and not stays:
        return _NONE_LEFT_OUT[language]
    told = ((_RELEASED, released), (_CHANGED_SINCE, stays))
    return " ".join(form[language].format(_named(texts)) for form, texts in told if texts)


def _named(texts: Sequence[str]) -> str:
    return "; ".join(f"“{each[:80]}”" for each in dict.fromkeys(texts))


TOOL = make_tool
