"""Routers of the JSON API, and pages of its lists in the order of a time or a name."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from api.problems import documented
from api.request_bodies import JsonRoute
from api.schemas import MAX_PAGE
from services.conversations.values import Id
from services.errors import InvalidInput

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
After = Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")]
AfterName = Annotated[Id | None, Query(description="The `next` of the page before.")]


@dataclass(frozen=True)
class Paging:
    """A page of a list in the order of a time: it starts after a place, or at the first item if that is None."""

    after: tuple[datetime, UUID] | None
    limit: int

    def of(self, items: Sequence[Any], time: str = "created_at") -> dict[str, Any]:
        """Return the page of these items; its `next` is the place of the last item if the page is full."""
        return {"items": items, "next": next_of(items, self.limit, time)}


async def _paging(after: After = None, limit: Limit = 50) -> Paging:
    return Paging(cursor_of(after), limit)


Paged = Annotated[Paging, Depends(_paging)]
"""The page that a request asks for."""


def next_of(items: Sequence[Any], limit: int, time: str = "created_at") -> str | None:
    """Return the place of the last item, unless no more can follow."""
    if len(items) < limit:
        return None
    place = f"{getattr(items[-1], time).isoformat()} {items[-1].id}"
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def cursor_of(after: str | None, item_id: Callable[[str], Any] = UUID) -> tuple[datetime, Any] | None:
    """Return the place that a `next` names.

    Args:
        after: Value in the request.
        item_id: Converts the text of an item's id.

    Raises:
        InvalidInput: It is no `next` of a page.
    """
    if after is None:
        return None
    try:
        padded = after + "=" * (-len(after) % 4)
        at, _, named = base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(" ")
        place = datetime.fromisoformat(at), item_id(named)
    except (ValueError, binascii.Error):
        raise InvalidInput("after", "is not the `next` of a page") from None
    if place[0].tzinfo is None:
        raise InvalidInput("after", "is not the `next` of a page")
    return place


NO_CONTENT: dict[str, Any] = {"status_code": HTTPStatus.NO_CONTENT, "response_class": Response}
"""Arguments of a route whose answer is empty; the default response would name a content type."""


def json_router(prefix: str, tag: str, *problems: HTTPStatus) -> APIRouter:
    """Return a router whose endpoints may answer with these problems, and always with 422 and 503."""
    every = (*problems, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
    return APIRouter(route_class=JsonRoute, prefix=prefix, tags=[tag], responses=documented(*every))
