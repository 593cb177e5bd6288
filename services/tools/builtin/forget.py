"""`forget`: the model removes what the user wants forgotten, from core memory and from recall."""

from typing import Annotated

from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError
from services.memory.editor import MemoryEditor
from services.memory.proposals import Proposals
from services.tools.actor import done_already, editing_of
from services.tools.proposing import proposed
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.context import TurnContext

What = Annotated[str, Field(description="Id of a memory, or its words")]


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if memory is on."""
    return (
        RegisteredTool(_over(services.editor, services.proposals), timeout_s=10.0, alone=True)
        if services.editor
        else None
    )


def _over(editor: MemoryEditor, proposals: Proposals | None) -> BaseTool:
    @service_tool
    async def forget(what: What, runtime: ToolRuntime[TurnContext]) -> str:
        """Remove what matches from memory and recall; use it at once when the user asks to forget something."""
        if done := done_already(runtime.context, what):
            return done
        try:
            if waits := await proposed(proposals, runtime, "forget", what):
                return waits
            change = await editor.forget(editing_of(runtime), what)
        except AnamnesisError as error:
            raise ToolException(f"Nothing was removed: {error.message}") from error
        return change["summary"]

    return forget


TOOL = make_tool
