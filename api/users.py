"""Users: where and when they are, what they are called; and their erasure."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path

from api.access import Admin, MemoryReader, MemoryWriter, ServicesOf
from api.problems import documented
from api.schemas import ErasureView
from api.visit_schemas import UserRequest, UserView
from services.conversations.values import Id

router = APIRouter(
    prefix="/api/v1/users",
    tags=["users"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)


@router.get("/{user_id}", response_model=UserView)
async def user(user_id: Annotated[Id, Path()], services: ServicesOf, caller: MemoryReader) -> Any:
    """One user."""
    caller.act_for(user_id)
    return await services.users.get(caller.tenant_id, user_id)


@router.patch("/{user_id}", response_model=UserView)
async def change(
    user_id: Annotated[Id, Path()], body: UserRequest, services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Change a user's time zone, locale or display name. Past days are those of the new zone from then on."""
    caller.act_for(user_id)
    return await services.users.change(caller.tenant_id, user_id, body.model_dump(exclude_unset=True))


@router.delete("/{user_id}", response_model=ErasureView)
async def erase(user_id: Annotated[Id, Path()], services: ServicesOf, caller: Admin) -> Any:
    """Remove a user, with all that is stored for them, and say what was removed from where."""
    caller.act_for(user_id)
    return await services.erasure.erase(caller.tenant_id, user_id)
