"""Users: their erasure."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path

from api.access import Admin, ServicesOf
from api.problems import documented
from api.schemas import ErasureView
from services.conversations.values import Id

router = APIRouter(
    prefix="/api/v1/users",
    tags=["users"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)


@router.delete("/{user_id}", response_model=ErasureView)
async def erase(user_id: Annotated[Id, Path()], services: ServicesOf, caller: Admin) -> Any:
    """Remove a user, with all that is stored for them, and say what was removed from where."""
    caller.act_for(user_id)
    return await services.erasure.erase(caller.tenant_id, user_id)
