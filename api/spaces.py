"""Spaces of users: list and erase them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.json_router import PathId, json_router
from api.problems import documented
from api.schemas import ErasureView, Page, StrictModel
from services.conversations.spaces import ListedSpace
from services.conversations.values import SpaceName

SpaceQuery = Annotated[
    SpaceName | None,
    Query(description="Name of the space in question; unset = what was said outside of any, which all share."),
]
"""Whose memory is read or changed: that of a space, or what all spaces of the user share."""


class SpaceChange(StrictModel):
    """What is to change about a space."""

    name: SpaceName = Field(description="The new name, which no other space of the user has.")


class ErasedSpaceView(ErasureView):
    """Counts of what was removed with a space, by store and kind."""

    space: str


router = json_router("/api/v1/users/{user_id}/spaces", "spaces", HTTPStatus.NOT_FOUND)


@router.get("", response_model=Page[ListedSpace])
async def spaces(user_id: PathId, services: ServicesOf, caller: MemoryReader) -> Any:
    """Every space of a user, by name, with the size of its content."""
    return {"items": await services.spaces.of_user(caller.tenant_id, user_id)}


@router.patch("/{space:path}", status_code=HTTPStatus.NO_CONTENT, responses=documented(HTTPStatus.CONFLICT))
async def rename(
    user_id: PathId,
    space: Annotated[SpaceName, Path()],
    change: SpaceChange,
    services: ServicesOf,
    caller: MemoryWriter,
) -> None:
    """Rename a space; its conversations and memories stay in it."""
    await services.spaces.rename(caller.tenant_id, user_id, space, change.name)


@router.delete("/{space:path}", response_model=ErasedSpaceView)
async def erase(
    user_id: PathId, space: Annotated[SpaceName, Path()], services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Remove a space with everything said and remembered in it; shared memory stays."""
    erased = await services.erasure.space(caller.tenant_id, user_id, space)
    return {"user_id": user_id, "space": space, **vars(erased)}
