"""`core_memory_update`: the model changes what it always knows about the user."""

from typing import Annotated, Any

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, InvalidInput
from services.memory.core.blocks import Owner
from services.memory.core.items import values_of
from services.memory.operations import Trigger
from services.tools.actor import proposed
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.turn import OpenTurn

Section = Annotated[
    str,
    Field(
        description="human: the user (name, preferences[], current_intent, …); persona: yourself with this user; "
        "or a name of your own"
    ),
]
Patch = Annotated[
    dict[str, Any],
    Field(
        description="Only what changes: short facts that the user stated and that hold in later conversations. "
        "null removes a key; items of an array are added."
    ),
]


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if core memory is on."""
    core_memory = services.core_memory
    if core_memory is None:
        return None

    @service_tool
    async def core_memory_update(
        content: Patch, runtime: ToolRuntime[OpenTurn], section: Section = "human"
    ) -> str:
        """Remember in core memory: JSON merge patch of a section."""
        if not content:
            raise ToolException("content is empty: there is nothing to change.")
        owner, trigger = Owner.of_turn(runtime.context), Trigger.of_turn(runtime.context, "model")
        text = "; ".join(value for _, value in values_of(content))
        try:
            if waits := await proposed(services.proposals, runtime, "remember", text or ", ".join(content)):
                return waits
            block = await core_memory.update(owner, section, content, trigger)
        except InvalidInput as error:
            raise ToolException(f"Nothing was changed: {error.field}: {error.message}.") from error
        except AnamnesisError as error:
            raise ToolException(f"Nothing was changed: {error.message}") from error
        return f"Core memory, {section}, version {block.version}: {', '.join(block.content) or 'empty'}."

    return RegisteredTool(core_memory_update, timeout_s=5.0, offered=False, alone=True, feature="core_memory")


TOOL = make_tool
