"""`archival_memory_insert`: the model writes an episode that later conversations recall."""

from typing import Annotated
from uuid import UUID

from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, InvalidInput
from services.memory.archive import Archive
from services.memory.episodes.episode import IMPORTANCE, NewEpisode, WrittenType
from services.memory.proposals import Proposals
from services.tools.actor import owner_of, trigger_of
from services.tools.proposing import proposed
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.context import TurnContext

Content = Annotated[
    str,
    Field(
        description="One sentence that is understood by itself, in the user's language: worth finding when its "
        "subject comes up again, yet not needed always"
    ),
]
Importance = Annotated[float | None, Field(ge=0, le=1, description="unset = as its type usually is")]


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if episodes are on."""
    return (
        RegisteredTool(
            _over(services.archive, services.proposals),
            timeout_s=5.0,
            offered=False,
            alone=True,
            feature="recall",
        )
        if services.archive
        else None
    )


def _over(archive: Archive, proposals: Proposals | None) -> BaseTool:
    @service_tool
    async def archival_memory_insert(
        content: Content,
        runtime: ToolRuntime[TurnContext],
        episode_type: WrittenType = "context",
        importance: Importance = None,
    ) -> str:
        """Insert an episode into archival memory."""
        context = runtime.context
        sources = [UUID(context.user_message_id)]
        episode = NewEpisode(
            content=content,
            episode_type=episode_type,
            importance=IMPORTANCE[episode_type] if importance is None else importance,
            origin="derived",
            source_message_ids=sources,
            conversation_id=UUID(context.conversation_id),
        )
        try:
            if waits := await proposed(proposals, runtime, "remember", content):
                return waits
            await archive.insert(owner_of(context), episode, trigger_of(runtime))
        except InvalidInput as error:
            raise ToolException(f"Nothing was stored: {error.field}: {error.message}.") from error
        except AnamnesisError as error:
            raise ToolException(f"Nothing was stored: {error.message}") from error
        return f"Stored as {episode_type}."

    return archival_memory_insert


TOOL = make_tool
