"""Model calls and tokens."""

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import Query

from api.access import KnownCaller, ServicesOf
from api.json_router import json_router
from api.paging import Limit
from api.schemas import Answer
from services.conversations.values import Id
from services.errors import InvalidInput
from services.usage.ledger import Dimension, UsageSum, today

router = json_router("/api/v1", "usage")

_USUAL_DAYS = 30


class UsagePage(Answer):
    """Sums, the largest first."""

    first: date
    last: date
    items: list[UsageSum]


@router.get("/usage", response_model=UsagePage)
async def usage(
    services: ServicesOf,
    caller: KnownCaller,
    first: Annotated[date | None, Query(description="The first day, of UTC; 30 days ago unless given.")] = None,
    last: Annotated[date | None, Query(description="The last day; today unless given.")] = None,
    by: Annotated[list[Dimension] | None, Query(description="What to split by; not given: one sum.")] = None,
    user_id: Annotated[Id | None, Query(description="Only what this user caused.")] = None,
    limit: Limit = 50,
) -> Any:
    """Tokens and calls of models, except for the last two seconds; those of others only with the scope `admin`."""
    if caller.user_id is not None:
        caller.act_for(user_id := user_id or caller.user_id)
    else:
        caller.require("admin")
    last = last or today()
    first = first or last - timedelta(days=_USUAL_DAYS)
    if first > last:
        raise InvalidInput("first", "is later than the last day")
    dimensions = list(dict.fromkeys(by or ()))
    items = await services.usage.sums(caller.tenant_id, first, last, dimensions, user=user_id, limit=limit)
    return {"first": first, "last": last, "items": items}
