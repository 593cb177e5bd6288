"""Users and their spaces: list, read, change and erase them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, Field, StringConstraints

from api.access import Admin, MemoryReader, PathId, ReadUser, WrittenUser
from api.paging import AfterName, Limit, json_router
from api.problems import CONFLICT
from api.schemas import ErasureView, Page, StrictModel, answered
from services.conversations.users import ListedSpace, ListedUser, User
from services.conversations.values import Locale, SpaceName, TimeZone
from services.errors import Forbidden
from services.platform.setting_values import QUIET_HOURS
from services.validation import no_nul

router = json_router("/api/v1/users", "users", HTTPStatus.NOT_FOUND)

Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(no_nul)
]


class UserRequest(StrictModel):
    """A change of a user; fields that are not given stay."""

    timezone: TimeZone = Field("UTC", description="IANA name or offset: in which their days are.")
    locale: Locale | None = Field(None, description="BCP 47 tag such as zh-CN; null = none.")
    display_name: Name | None = Field(None, description="1 to 200 characters; null = none.")
    memory: bool = Field(
        True,
        description="false: later turns neither read memory nor add to it; what is remembered, and the "
        "conversations, stay.",
    )
    mood: bool = Field(True, description="false: how they feel is neither noted nor told.")
    quiet_hours: str | None = Field(
        None,
        pattern=f"^(?:{QUIET_HOURS})$",
        description="When nothing is said unasked: 22:00-07:00, always or never; null = as the setting says.",
    )


@router.get("", response_model=Page[ListedUser])
async def users(
    caller: MemoryReader,
    prefix: Annotated[
        str | None, Query(min_length=1, max_length=128, description="How the name, or the display name, begins.")
    ] = None,
    after: AfterName = None,
    limit: Limit = 50,
) -> Any:
    """Users of the tenant, by name; 403 for a caller who is one user."""
    if caller.user_id is not None:
        raise Forbidden("This is for callers who may act for every user of the tenant.")
    prefix = prefix.replace("\x00", "") if prefix else None
    items = await caller.services.users.page(caller.tenant_id, prefix=prefix, after=after, limit=limit)
    return {"items": items, "next": items[-1].user_id if len(items) == limit else None}


@router.get("/{user_id}", response_model=answered(User))
async def user(user: ReadUser) -> Any:
    """One user."""
    return await user.services.users.get(*user.named)


@router.patch("/{user_id}", response_model=answered(User))
async def change(user: WrittenUser, body: UserRequest) -> Any:
    """Change a user's time zone, locale, display name or switches. Past days then follow the new zone."""
    return await user.services.users.change(*user.named, body.model_dump(exclude_unset=True))


@router.delete("/{user_id}", response_model=ErasureView)
async def erase(user_id: PathId, caller: Admin) -> Any:
    """Remove a user with everything stored for them, and report what was removed from where."""
    return {"user_id": user_id, **vars(await caller.services.erasure.user(caller.tenant_id, user_id))}


class SpaceChange(StrictModel):
    """New values of a space."""

    name: SpaceName = Field(description="The new name, which no other space of the user has.")


class ErasedSpaceView(ErasureView):
    """Counts of what was removed with a space, by store and kind."""

    space: str


spaces_router = json_router("/api/v1/users/{user_id}/spaces", "spaces", HTTPStatus.NOT_FOUND)


@spaces_router.get("", response_model=Page[ListedSpace])
async def spaces(user: ReadUser) -> Any:
    """Every space of a user, by name, with the size of its content."""
    return {"items": await user.services.spaces.of_user(*user.named)}


@spaces_router.patch("/{space:path}", status_code=HTTPStatus.NO_CONTENT, responses=CONFLICT)
async def rename(user: WrittenUser, space: Annotated[SpaceName, Path()], change: SpaceChange) -> None:
    """Rename a space; its conversations and memories stay in it."""
    await user.services.spaces.rename(*user.named, space, change.name)


@spaces_router.delete("/{space:path}", response_model=ErasedSpaceView)
async def erase_space(user: WrittenUser, space: Annotated[SpaceName, Path()]) -> Any:
    """Remove a space with everything said and remembered in it; shared memory stays."""
    erased = await user.services.erasure.space(*user.named, space)
    return {"user_id": user.user_id, "space": space, **vars(erased)}
