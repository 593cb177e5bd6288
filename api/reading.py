"""What is stored, as it is read: conversations and their messages."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Protocol
from uuid import UUID

from fastapi import APIRouter, Query

from api.access import MemoryReader, ServicesOf
from api.problems import documented
from api.schemas import (
    MAX_PAGE,
    ConversationPage,
    ConversationView,
    Id,
    MessagePage,
)
from services.conversations.transcript import Cursor
from services.errors import InvalidInput

router = APIRouter(
    prefix="/api/v1",
    tags=["reading"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
After = Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")]


@router.get("/conversations", response_model=ConversationPage)
async def conversations(
    services: ServicesOf,
    caller: MemoryReader,
    user_id: Id | None = None,
    session_id: Id | None = None,
    after: After = None,
    limit: Limit = 50,
) -> Any:
    """Conversations of the tenant, of one user, or of one session name, newest first."""
    if user_id is not None:
        caller.act_for(user_id)
    items = await services.transcript.conversations(
        caller.tenant_id,
        user_id=user_id or caller.user_id,
        session_id=session_id,
        after=_cursor(after),
        limit=limit,
    )
    return {"items": items, "next": _next(items, limit)}


@router.get("/conversations/{conversation_id}", response_model=ConversationView)
async def conversation(conversation_id: UUID, services: ServicesOf, caller: MemoryReader) -> Any:
    """One conversation."""
    return await services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)


@router.get("/conversations/{conversation_id}/messages", response_model=MessagePage)
async def messages(
    conversation_id: UUID, services: ServicesOf, caller: MemoryReader, after: After = None, limit: Limit = 50
) -> Any:
    """Messages of a conversation, oldest first, answers that broke off among them."""
    items = await services.transcript.messages(
        caller.tenant_id, conversation_id, user_id=caller.user_id, after=_cursor(after), limit=limit
    )
    return {"items": items, "next": _next(items, limit)}


class _Item(Protocol):
    @property
    def id(self) -> UUID: ...

    @property
    def created_at(self) -> datetime: ...


def _next(items: Sequence[_Item], limit: int) -> str | None:
    """The place of the last item, unless it is surely the last one there is."""
    if len(items) < limit:
        return None
    last = items[-1]
    return base64.urlsafe_b64encode(f"{last.created_at.isoformat()} {last.id}".encode()).decode().rstrip("=")


def _cursor(after: str | None) -> Cursor | None:
    if after is None:
        return None
    try:
        padded = after + "=" * (-len(after) % 4)
        at, _, item_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(" ")
        place = datetime.fromisoformat(at), UUID(item_id)
    except (ValueError, binascii.Error):
        raise InvalidInput("after", "is not the `next` of a page") from None
    if place[0].tzinfo is None:
        raise InvalidInput("after", "is not the `next` of a page")
    return place
