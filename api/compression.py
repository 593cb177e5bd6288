"""Compression of a user's memory: start, list and undo runs."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.compression_schemas import CompressionRequest, CompressionRunPage, CompressionRunView
from api.paging import After, Limit, cursor_of, next_of
from api.problems import documented
from api.request_bodies import JsonRoute
from services.conversations.values import Id

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/users/{user_id}/compression-runs",
    tags=["memory"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)

User = Annotated[Id, Path()]


@router.post(
    "",
    response_model=CompressionRunView,
    status_code=HTTPStatus.ACCEPTED,
    responses=documented(HTTPStatus.CONFLICT),
)
async def compress(user_id: User, body: CompressionRequest, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Let a worker merge duplicate episodes; 409 while a run is in progress.

    With `dry_run` nothing is changed, and the report says what would be.
    """
    caller.act_for(user_id)
    owner = await services.memory.core.owner(caller.tenant_id, user_id, body.expert)
    return await services.compression.request(owner, dry_run=body.dry_run)


@router.get("", response_model=CompressionRunPage)
async def runs(
    user_id: User, services: ServicesOf, caller: MemoryReader, after: After = None, limit: Limit = 50
) -> Any:
    """Compression runs with their reports, newest first."""
    caller.act_for(user_id)
    user = await services.compression.store.user_id(caller.tenant_id, user_id)
    items = await services.compression.store.runs(caller.tenant_id, user, after=cursor_of(after), limit=limit)
    return {"items": items, "next": next_of([(item.created_at, item.id) for item in items], limit)}


@router.post("/{run_id}/undo", response_model=CompressionRunView, responses=documented(HTTPStatus.CONFLICT))
async def undo(user_id: User, run_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Restore exactly what a run superseded; 409 if it cannot be undone, or a later run builds on it."""
    caller.act_for(user_id)
    user = await services.compression.store.user_id(caller.tenant_id, user_id)
    await services.compression.undo.undo(caller.tenant_id, user, run_id)
    return await services.compression.run(caller.tenant_id, user, run_id)
