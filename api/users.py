"""Users: list, read, change and erase them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query

from api.access import Admin, MemoryReader, MemoryWriter, ServicesOf
from api.json_router import json_router
from api.paging import Limit
from api.schemas import ErasureView, Page, answered
from api.visit_schemas import UserRequest
from services.conversations.users import ListedUser, User
from services.conversations.values import Id
from services.errors import Forbidden

router = json_router("/api/v1/users", "users", HTTPStatus.NOT_FOUND)


@router.get("", response_model=Page[ListedUser])
async def users(
    services: ServicesOf,
    caller: MemoryReader,
    prefix: Annotated[
        str | None, Query(min_length=1, max_length=128, description="How the name, or the display name, begins.")
    ] = None,
    after: Annotated[Id | None, Query(description="The `next` of the page before.")] = None,
    limit: Limit = 50,
) -> Any:
    """Users of the tenant, by name; 403 for a caller who is one user."""
    if caller.user_id is not None:
        raise Forbidden("This is for callers who may act for every user of the tenant.")
    prefix = prefix.replace("\x00", "") if prefix else None
    items = await services.users.page(caller.tenant_id, prefix=prefix, after=after, limit=limit)
    return {"items": items, "next": items[-1].user_id if len(items) == limit else None}


@router.get("/{user_id}", response_model=answered(User))
async def user(user_id: Annotated[Id, Path()], services: ServicesOf, caller: MemoryReader) -> Any:
    """One user."""
    caller.act_for(user_id)
    return await services.users.get(caller.tenant_id, user_id)


@router.patch("/{user_id}", response_model=answered(User))
async def change(
    user_id: Annotated[Id, Path()], body: UserRequest, services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Change a user's time zone, locale or display name. Past days then follow the new zone."""
    caller.act_for(user_id)
    return await services.users.change(caller.tenant_id, user_id, body.model_dump(exclude_unset=True))


@router.delete("/{user_id}", response_model=ErasureView)
async def erase(user_id: Annotated[Id, Path()], services: ServicesOf, caller: Admin) -> Any:
    """Remove a user with everything stored for them, and report what was removed from where."""
    caller.act_for(user_id)
    return {"user_id": user_id, **vars(await services.erasure.user(caller.tenant_id, user_id))}
