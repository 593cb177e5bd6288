"""Promises: what the assistant says by itself at its time. They are made, listed, moved, settled and cancelled."""

from http import HTTPStatus
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import Query
from fastapi.responses import PlainTextResponse
from pydantic import Field, StringConstraints, model_validator

from api.access import ReadUser, WrittenUser
from api.paging import Paged, json_router
from api.problems import CONFLICT
from api.schemas import MAX_PAGE, Page, StrictModel, answered
from services.conversations.values import Id, SpaceName, Text, TimeZone
from services.memory.core.blocks import Owner
from services.promises.calendar import calendar_of
from services.promises.promise import LONGEST_TEXT, Promise
from services.promises.promises import NewPromise
from services.time_reference.occasions import LONGEST

What = Annotated[Text, StringConstraints(max_length=LONGEST_TEXT)]
When = Annotated[
    Text,
    StringConstraints(max_length=LONGEST),
    Field(description="Such as `tomorrow at nine`, `every Monday`, 明早九点 or `2026-12-24T09:00`."),
]

router = json_router("/api/v1/users/{user_id}/promises", "promises", HTTPStatus.NOT_FOUND)

_Promise = answered(Promise)


class NewPromiseRequest(StrictModel):
    """A promise to make."""

    text: What
    when: When
    timezone: TimeZone | None = Field(None, description="On whose clock; null = the user's.")
    conversation_id: UUID | None = Field(None, description="Where it is kept; null = in the user's newest.")
    session_id: Id | None = Field(None, description="The same by the caller's name of the conversation.")
    expert: Id = Field("default", description="Name of the expert who keeps it.")
    space: SpaceName | None = None


class PromiseChangeRequest(StrictModel):
    """A change of a promise; fields that are not given stay."""

    text: What | None = None
    when: When | None = None
    timezone: TimeZone | None = None
    state: Literal["open", "kept", "cancelled"] | None = Field(None, description="`kept` = it is done already.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change; give text, when, timezone or state")
        return self


@router.get("", response_model=Page[Promise])
async def promises(
    user: ReadUser,
    page: Paged,
    state: Annotated[Literal["open", "kept", "cancelled", "missed"] | None, Query()] = None,
) -> Any:
    """Promises of a user by their moments, the earliest first, in all spaces and with every expert."""
    owner = await user.owner()
    found = await user.services.promises.list(owner, state=state, after=page.after, limit=page.limit)
    return page.of(found, "when")


@router.post("", response_model=_Promise, status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def make(user: WrittenUser, body: NewPromiseRequest) -> Any:
    """Make a promise: at its time, the assistant says it by itself in the conversation.

    It is kept to the minute; a day without a time means nine in the morning. 422 names `when` where it cannot be
    read, or is past.
    """
    services = user.services
    await services.users.make(*user.named)
    owner = await user.owner(body.expert, body.space, make_space=True)
    place = body.conversation_id
    if place is not None or body.session_id is not None:
        place = await services.promises.conversation(owner, conversation_id=place, session=body.session_id)
    new = NewPromise(text=body.text, when=body.when, timezone=body.timezone, conversation_id=place)
    made, _ = await services.promises.make(owner, new, user.trigger)
    return made


@router.get("/calendar.ics", response_class=PlainTextResponse)
async def calendar(user: ReadUser) -> PlainTextResponse:
    """The open promises as a calendar (RFC 5545), which other programs read."""
    found = await user.services.promises.list(await user.owner(), state="open", limit=MAX_PAGE)
    return PlainTextResponse(calendar_of(found), media_type="text/calendar")


@router.get("/{promise_id}", response_model=_Promise)
async def promise(user: ReadUser, promise_id: UUID) -> Any:
    """One promise."""
    return await user.services.promises.get(await user.owner(), promise_id)


@router.patch("/{promise_id}", response_model=_Promise)
async def change(user: WrittenUser, promise_id: UUID, body: PromiseChangeRequest) -> Any:
    """Say it otherwise, move it, or settle it; one that is moved is open again."""
    owner: Owner = await user.owner()
    return await user.services.promises.change(owner, promise_id, user.trigger, **body.model_dump())


@router.delete("/{promise_id}", response_model=_Promise)
async def cancel(user: WrittenUser, promise_id: UUID) -> Any:
    """Cancel a promise. It stays listed as cancelled; the log of operations brings it back."""
    owner: Owner = await user.owner()
    return await user.services.promises.change(owner, promise_id, user.trigger, state="cancelled")
