"""Events of users: a stream for their clients, and webhooks of the tenant with their deliveries."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Header, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from api.access import Admin, ReadUser
from api.paging import NO_CONTENT, Paged, json_router
from api.problems import CONFLICT
from api.schemas import Page, StrictModel, answered
from api.streams import EventStream
from services.errors import InvalidInput
from services.events.feed import EventKind, UserEvent
from services.events.webhooks import Delivery, NewWebhook, Tried, Webhook
from services.identity.tenants import user_id_of

_LONGEST_NUMBER = 18

router = json_router("/api/v1/users/{user_id}/events", "events", HTTPStatus.NOT_FOUND)
webhook_router = json_router("/api/v1/webhooks", "events", HTTPStatus.NOT_FOUND)


@router.get("", response_class=StreamingResponse)
async def events(
    user: ReadUser,
    last_event_id: Annotated[
        str | None, Header(description="Number of the last event seen; unset = only what happens from now on.")
    ] = None,
    wait_s: Annotated[
        float | None, Query(ge=0, le=86_400, description="Seconds after which it ends; unset = it stays open.")
    ] = None,
) -> Any:
    """Server-sent events of a user as they happen: promises, memory, proposals, failed turns, erasures.

    `data` is `{id, kind, about, at}`; `about` holds ids. Events are kept for a week.
    """
    tenant_id, name = user.named
    user_id = await user_id_of(user.services.database, tenant_id, name)
    after = None
    if last_event_id is not None:
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) <= _LONGEST_NUMBER):
            raise InvalidInput("Last-Event-ID", "is not the number of an event")
        after = int(last_event_id)
    feed = user.services.event_feed
    begin = await feed.newest(tenant_id, user_id) if after is None else after
    until = None if wait_s is None else monotonic() + wait_s

    async def frames() -> AsyncGenerator[bytes, None]:
        async with aclosing(feed.follow(tenant_id, user_id, begin)) as found:
            async for batch in found:
                if batch:
                    yield _frames(batch)
                elif user.caller.runner.draining or (until is not None and monotonic() >= until):
                    return

    return EventStream(frames())


def _frames(batch: Sequence[UserEvent]) -> bytes:
    return b"".join(
        b"id: %d\nevent: %s\ndata: %s\n\n" % (each.id, each.kind.encode(), orjson.dumps(vars(each)))
        for each in batch
    )


class WebhookRequest(StrictModel):
    """An address to tell of events."""

    url: str = Field(min_length=8, max_length=2000, description="https, and a public address.")
    kinds: list[EventKind] = Field(default_factory=list, description="Of which events; empty = of all.")


@webhook_router.get("", response_model=Page[Webhook])
async def webhooks(caller: Admin) -> Any:
    """The tenant's webhooks."""
    return {"items": await caller.services.webhooks.list(caller.tenant_id)}


@webhook_router.post("", response_model=answered(NewWebhook), status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def add(body: WebhookRequest, caller: Admin) -> Any:
    """Add a webhook. Its secret is told here alone; messages are signed as standardwebhooks.com says."""
    return await caller.services.webhooks.add(caller.tenant_id, body.url, body.kinds)


@webhook_router.delete("/{webhook_id}", **NO_CONTENT)
async def remove(webhook_id: UUID, caller: Admin) -> None:
    """Remove a webhook, and what it was to be told."""
    await caller.services.webhooks.remove(caller.tenant_id, webhook_id)


@webhook_router.post("/{webhook_id}/test", response_model=answered(Tried))
async def try_out(webhook_id: UUID, caller: Admin) -> Any:
    """Send it a signed message of the type `webhook.test` at once; the answer says how it was taken."""
    return await caller.services.webhooks.try_out(caller.tenant_id, webhook_id)


@webhook_router.get("/{webhook_id}/deliveries", response_model=Page[Delivery])
async def deliveries(webhook_id: UUID, caller: Admin, page: Paged) -> Any:
    """List the deliveries of the last week, the newest first."""
    found = await caller.services.webhooks.deliveries(
        caller.tenant_id, webhook_id, after=page.after, limit=page.limit
    )
    return page.of(found)


@webhook_router.post("/{webhook_id}/deliveries/{delivery_id}/repeat", responses=CONFLICT, **NO_CONTENT)
async def repeat(webhook_id: UUID, delivery_id: UUID, caller: Admin) -> None:
    """Tell it once more; 409 while the delivery waits still."""
    await caller.services.webhooks.repeat(caller.tenant_id, webhook_id, delivery_id)
