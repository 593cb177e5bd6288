"""`remember`: the model keeps or corrects a fact, a preference or a standing wish of the user."""

from typing import Annotated

from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, InvalidInput
from services.memory.editor import MemoryEditor
from services.memory.proposals import Proposals
from services.tools.actor import done_already, editing_of
from services.tools.proposing import proposed
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.context import TurnContext

Text = Annotated[str, Field(description="One short sentence, in the user's words")]
Replaces = Annotated[str, Field(description="Id or words of the outdated memory, if any")]


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if core memory is on."""
    if services.editor is None:
        return None
    return RegisteredTool(
        _over(services.editor, services.proposals), timeout_s=5.0, feature="core_memory", alone=True
    )


def _over(editor: MemoryEditor, proposals: Proposals | None) -> BaseTool:
    @service_tool
    async def remember(text: Text, runtime: ToolRuntime[TurnContext], replaces: Replaces = "") -> str:
        """Save or correct a lasting fact, preference or wish; call it when the user asks or states one."""
        if not text.strip():
            raise ToolException("text is empty: there is nothing to remember.")
        if done := done_already(runtime.context, text):
            return done
        try:
            if waits := await proposed(proposals, runtime, "remember", text, replaces):
                return waits
            change = await editor.remember(editing_of(runtime), text, replaces=replaces)
        except InvalidInput as error:
            raise ToolException(f"Nothing was changed: {error.field}: {error.message}.") from error
        except AnamnesisError as error:
            raise ToolException(f"Nothing was changed: {error.message}") from error
        return change["summary"]

    return remember


TOOL = make_tool
