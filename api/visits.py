"""Visits and daily summaries; closing a visit."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import Field

from api.access import Chatter, ExpertQuery, ReadUser, SpaceQuery
from api.paging import Limit, Paged, json_router
from api.schemas import Answer, AsOf, Page, answered
from services.errors import InvalidInput
from services.summaries.daily_summaries import Day
from services.summaries.day_store import StoredDay
from services.time_reference.local_days import local_day
from services.visits.visit import Visit
from services.visits.visits import Closed

_USUAL_DAYS = 31
_MOST_DAYS = 366

router = json_router("/api/v1", "visits", HTTPStatus.NOT_FOUND)


@dataclass(frozen=True, kw_only=True)
class DailySummaryView(StoredDay):
    """Summary of a user's local day with an expert."""

    expert: str
    stale: bool | None
    """Whether something was said since that it does not cover; null with `as_of`."""


class DailySummaryPage(Answer):
    """Days, newest first. `next` is the `after` of the next page, or null."""

    items: list[DailySummaryView]
    pending: list[date] = Field(
        description="Days whose summary is missing or stale, and is being made in the background."
    )
    next: str | None


@router.post("/conversations/{conversation_id}/close", response_model=answered(Closed))
async def close(conversation_id: UUID, caller: Chatter) -> Any:
    """End the conversation's open visit; its next message begins another."""
    return await caller.services.visits.close(caller.tenant_id, conversation_id, user=caller.user_id)


@router.get("/users/{user_id}/visits", response_model=Page[Visit])
async def visits(user: ReadUser, page: Paged) -> Any:
    """Visits of a user, newest first."""
    await user.services.users.get(*user.named)
    return page.of(await user.services.visits.of_user(*user.named, **vars(page)), "started_at")


@router.get("/users/{user_id}/daily-summaries", response_model=DailySummaryPage)
async def daily_summaries(
    user: ReadUser,
    since: Annotated[
        date | None, Query(alias="from", description="First day; unset = 31 days up to `to`.")
    ] = None,
    until: Annotated[date | None, Query(alias="to", description="Last day; unset = the user's today.")] = None,
    expert: ExpertQuery = "default",
    space: SpaceQuery = None,
    as_of: AsOf = None,
    after: Annotated[date | None, Query(description="The `next` of the page before.")] = None,
    limit: Limit = 50,
) -> Any:
    """List the summaries of a user's local days, newest first; with `space`, only in that space.

    Missing or stale summaries of the newest days are made before the response, as far as that is quick; the others
    in the background. With `as_of`, the summaries that were stored at that moment; none is made.
    """
    services, timezone = user.services, (await user.services.users.get(*user.named)).timezone
    owner = await user.owner(expert, space)
    end = until or local_day(datetime.now(UTC), timezone)
    begin = since or _days_before(end, _USUAL_DAYS - 1)
    if begin > end:
        raise InvalidInput("from", "is after `to`")
    if (end - begin).days >= _MOST_DAYS:
        raise InvalidInput("from", f"is more than {_MOST_DAYS} days before the last day")
    if after is not None:
        end = min(end, _days_before(after, 1))
    if as_of is not None:
        known = await services.daily.store.days_at(owner, begin, end, as_of) if begin <= end else []
        shown = known[::-1][:limit]
        return {
            "items": [{**vars(day), "expert": expert, "stale": None} for day in shown],
            "pending": [],
            "next": str(shown[-1].date) if len(shown) == limit else None,
        }
    days: list[Day] = []
    if begin <= end:
        days = await services.daily_scheduler.up_to_date(owner, begin, end, timezone, newest=limit)
    return {
        "items": [_view(day, timezone, expert) for day in reversed(days) if day.stored],
        "pending": [day.date for day in reversed(days) if day.fresh is None],
        "next": str(days[0].date) if len(days) == limit else None,
    }


def _days_before(day: date, count: int) -> date:
    try:
        return day - timedelta(days=count)
    except OverflowError:
        return date.min


def _view(day: Day, timezone: str, expert: str) -> dict[str, Any]:
    assert day.stored is not None  # noqa: S101 — the caller's choice
    return {**vars(day.stored), "timezone": timezone, "expert": expert, "stale": day.stale}
