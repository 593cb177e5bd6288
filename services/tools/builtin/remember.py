"""`remember`: the model keeps or corrects a fact, a preference or a standing wish of the user."""

from typing import Annotated
from uuid import UUID

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError, InvalidInput
from services.memory.core.blocks import Owner
from services.memory.filing.answer import listed_field
from services.memory.planning.planner import Kept
from services.memory.proposals.settling import Proposals
from services.memory.reading.plain_forms import plain_forms
from services.tools.actor import proposed, request_of
from services.tools.tool import RegisteredTool, Settled, ToolServices, service_tool
from state.turn import OpenTurn, Read

Text = Annotated[str, Field(description="Short sentence in the user's language, dates as dates")]
Replaces = Annotated[str, Field(description="Outdated memory: id or words")]
Kind = Annotated[
    str, Field(description="name, home, work, people, pets, allergies, health, plans, dates, wishes, facts")
]
Answered = Annotated[bool, Field(description="This message answers the user")]
_BESIDES_FILING = "Save what the user asks to keep, corrects or wishes; other facts are kept anyway."
"""Description of the tool for experts whose facts are also filed without it."""


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """Make the tool, if core memory is on."""
    changes, proposals = services.changes, services.proposals
    if changes is None or services.core_memory is None:
        return None

    @service_tool
    async def remember(
        runtime: ToolRuntime[OpenTurn],
        text: Text = "",
        field: Kind = "",
        replaces: Replaces = "",
        confirm: str = "",
        answered: Answered = False,
    ) -> str:
        """Save or correct a lasting fact or wish that the user states."""
        try:
            if confirm.strip() and proposals is not None:
                return await _confirmed(proposals, runtime, confirm.strip())
            if not text.strip():
                raise ToolException("text is empty: there is nothing to remember.")
            if waits := await proposed(proposals, runtime, "remember", text, replaces):
                return waits
            kind: Kept | None = "standing" if _is_wish(runtime.context.read) else None
            change = await changes.remember(
                request_of(runtime), text, replaces=replaces, field=listed_field(field) or "", kind=kind
            )
        except InvalidInput as error:
            raise ToolException(f"Nothing was changed: {error.field}: {error.message}.") from error
        except AnamnesisError as error:
            raise ToolException(f"Nothing was changed: {error.message}") from error
        is_settled = answered and change["operation_id"] is not None
        return Settled(change["summary"]) if is_settled else change["summary"]

    usual = remember.model_copy(update={"description": _BESIDES_FILING}) if services.files else remember
    return RegisteredTool(usual, timeout_s=5.0, feature="core_memory", alone=True, without_filing=remember)


def _is_wish(read: Read) -> bool:
    """Return whether the user's message is the plain form of a standing wish, and nothing else."""
    forms = plain_forms(read.said[-1]) if read.said else []
    return [(each.kind, each.rest) for each in forms] == [("standing", "")]


async def _confirmed(proposals: Proposals, runtime: ToolRuntime[OpenTurn], confirm: str) -> str:
    if any(runtime.context.read.foreign):  # a text of others may say yes, or tell the model that the user did
        raise ToolException("Nothing was changed: the user's message shows text of others. Ask them again.")
    try:
        proposal_id = UUID(confirm)
    except ValueError as error:
        raise ToolException(f"There is no proposal {confirm}.") from error
    change = await proposals.confirm(Owner.of_turn(runtime.context), proposal_id, request_of(runtime))
    return change["summary"]


TOOL = make_tool
