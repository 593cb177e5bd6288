"""Forgetting what a text describes."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from api.access import MemoryWriter, ServicesOf
from api.problems import documented
from api.schemas import MemoryChangeView
from services.conversations.values import Id, Text
from services.memory.editor import EditContext
from services.memory.operations import Trigger

router = APIRouter(
    prefix="/api/v1/users/{user_id}/memory",
    tags=["memory"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)


class ForgetRequest(BaseModel):
    """What to forget."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"what": "that I have diabetes"}]})

    what: Text = Field(description="In the words in which it was told.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")


@router.post("/forget", response_model=MemoryChangeView)
async def forget(
    user_id: Annotated[Id, Path()], body: ForgetRequest, services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Remove what a text describes from core memory and recall; messages stay in their conversation."""
    caller.act_for(user_id)
    owner = await services.memory.core.owner(caller.tenant_id, user_id, body.expert)
    return await services.memory.editor.forget(EditContext.outside_of_turns(owner, Trigger("user")), body.what)
