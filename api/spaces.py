"""Spaces of users: list and erase them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.json_router import json_router
from api.problems import documented
from api.schemas import Page
from api.space_schemas import ErasedSpaceView, SpaceChange
from services.conversations.spaces import ListedSpace
from services.conversations.values import Id, SpaceName

router = json_router("/api/v1/users/{user_id}/spaces", "spaces", HTTPStatus.NOT_FOUND)

User = Annotated[Id, Path()]


@router.get("", response_model=Page[ListedSpace])
async def spaces(user_id: User, services: ServicesOf, caller: MemoryReader) -> Any:
    """Every space of a user, by name, with the size of its content."""
    return {"items": await services.spaces.of_user(caller.tenant_id, user_id)}


@router.patch("/{space:path}", status_code=HTTPStatus.NO_CONTENT, responses=documented(HTTPStatus.CONFLICT))
async def rename(
    user_id: User,
    space: Annotated[SpaceName, Path()],
    change: SpaceChange,
    services: ServicesOf,
    caller: MemoryWriter,
) -> None:
    """Rename a space; its conversations and memories stay in it."""
    await services.spaces.rename(caller.tenant_id, user_id, space, change.name)


@router.delete("/{space:path}", response_model=ErasedSpaceView)
async def erase(
    user_id: User, space: Annotated[SpaceName, Path()], services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Remove a space with everything said and remembered in it; shared memory stays."""
    erased = await services.erasure.space(caller.tenant_id, user_id, space)
    return {"user_id": user_id, "space": space, **vars(erased)}
