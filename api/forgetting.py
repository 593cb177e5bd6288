"""Forgetting what a text describes."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from api.access import MemoryWriter, ServicesOf
from api.chat_schemas import MemoryChangeView
from api.json_router import json_router
from api.schemas import StrictModel
from services.conversations.values import Id, SpaceName, Text
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger

router = json_router("/api/v1/users/{user_id}/memory", "memory", HTTPStatus.NOT_FOUND)


class ForgetRequest(StrictModel):
    """What to forget."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"what": "that I have diabetes"}]})

    what: Text = Field(description="Its description, in the user's words.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    dry_run: bool = Field(False, description="Change nothing, and say what would be removed.")
    space: SpaceName | None = Field(None, description="Forget it in this space as well.")


class AffectedView(BaseModel):
    """How much a forgetting removes."""

    messages: int = Field(description="That memory keeps nothing of any more; they stay in their conversation.")
    memories: int = Field(description="That were written down.")
    core_memory_items: int


class ForgottenView(MemoryChangeView):
    """What was forgotten, or would be."""

    affected: AffectedView | None = Field(description="Only with `dry_run`; `operation_id` is null then.")


@router.post("/forget", response_model=ForgottenView)
async def forget(
    user_id: Annotated[Id, Path()], body: ForgetRequest, services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Remove what a text describes, or an episode's id names, from core memory and recall.

    Messages stay in their conversation.
    """
    owner = await services.memory.core.owner(caller.tenant_id, user_id, body.expert, body.space)
    request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
    if not body.dry_run:
        return {**await services.memory.changes.forget(request, body.what), "affected": None}
    planned = await services.memory.changes.planner.plan_named(request, body.what)
    affected = AffectedView(
        messages=len(planned["messages"]),
        memories=len(planned["episodes"]),
        core_memory_items=len(planned["items"]),
    )
    return {**planned["change"], "operation_id": None, "affected": affected}
