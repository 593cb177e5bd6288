"""What is known of users: statements with their sources, newest first."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from api.access import MemoryReader, ServicesOf
from api.episode_schemas import SourceView
from api.moments import ValidityView, validity_fields
from api.problems import documented
from api.request_bodies import JsonRoute
from services.conversations.values import Id
from services.errors import InvalidInput

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/users/{user_id}/memories",
    tags=["memory"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)


class StatementView(ValidityView):
    """A statement about the user and their world."""

    id: str = Field(description="Named by `forget`: `v` and twelve hexadecimal digits for a value, else a UUID.")
    kind: Literal["value", "written"] = Field(description="A value of core memory, or a memory that was written.")
    text: str
    field: str | None = Field(description="Of a value: its field of core memory.")
    expert: str
    space: str | None
    since: datetime = Field(description="When it became known.")
    pinned: bool
    replaced: str | None = Field(description="What it took the place of.")
    sources: list[SourceView] = Field(description="The messages that it comes from.")


class StatementPage(BaseModel):
    """Statements, newest first. `next` is the `after` of the next page, or null."""

    items: list[StatementView]
    next: str | None


@router.get("", response_model=StatementPage)
async def memories(
    user_id: Annotated[Id, Path()],
    services: ServicesOf,
    caller: MemoryReader,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Any:
    """List what is known of a user: values of core memory and written memories.

    What was said is not listed here; `episodes` and their search have it.
    """
    caller.act_for(user_id)
    found = await services.memory.known.list(caller.tenant_id, user_id, after=_place(after), limit=limit)
    items = [{**vars(each), **validity_fields(each.text, each.since)} for each in found]
    last = found[-1] if len(found) == limit else None
    return {"items": items, "next": f"{last.since.isoformat()}~{last.id}" if last else None}


def _place(after: str | None) -> tuple[datetime, str] | None:
    if after is None:
        return None
    at, _, statement = after.partition("~")
    try:
        return datetime.fromisoformat(at), statement
    except ValueError:
        raise InvalidInput("after", "is the `next` of a page") from None
