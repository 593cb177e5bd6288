"""Maintenance of memory: the tenant's policy, and runs that let unused memories of a user fade."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.access import Admin, KnownCaller, MemoryReader, MemoryWriter, ServicesOf
from api.maintenance_schemas import FadingPreviewView, FadingQuery, FadingRunPage, FadingRunView, PolicyView
from api.paging import After, Limit, cursor_of, next_of
from api.problems import documented
from api.request_bodies import JsonRoute
from services.bootstrap import Services
from services.conversations.values import Id
from services.identity.caller import Caller
from services.maintenance.fading import FadingRun
from services.maintenance.policy import MaintenancePolicy

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1",
    tags=["memory"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)

User = Annotated[Id, Path()]


@router.get("/maintenance-policy", response_model=PolicyView)
async def policy(services: ServicesOf, caller: KnownCaller) -> Any:
    """Policy by which memories of the tenant's users fade, and proposals are settled."""
    return PolicyView.of(await services.maintenance.policies.of(caller.tenant_id))


@router.put("/maintenance-policy", response_model=PolicyView)
async def set_policy(body: PolicyView, services: ServicesOf, caller: Admin) -> Any:
    """Set the tenant's policy as a whole; it holds from the next run on."""
    await services.maintenance.policies.set(caller.tenant_id, body.policy())
    return body


@router.get("/users/{user_id}/fading-preview", response_model=FadingPreviewView)
async def preview(
    user_id: User, services: ServicesOf, caller: MemoryReader, query: Annotated[FadingQuery, Query()]
) -> Any:
    """Exactly what a run would archive or remove now, and why; nothing is changed."""
    caller.act_for(user_id)
    found = await services.maintenance.fading.preview(
        caller.tenant_id, user_id, await _policy(services, caller, query)
    )
    return {**vars(found), "policy": PolicyView.of(found.policy), "items": [vars(each) for each in found.items]}


@router.post(
    "/users/{user_id}/fading-runs",
    response_model=FadingRunView,
    status_code=HTTPStatus.CREATED,
    responses=documented(HTTPStatus.CONFLICT),
)
async def run(user_id: User, body: FadingQuery, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Let the user's unused memories fade now; 409 where nothing fades by the policy and `fading` is not given."""
    caller.act_for(user_id)
    report = await services.maintenance.fading.run(
        caller.tenant_id, user_id, await _policy(services, caller, body)
    )
    return _view(report)


@router.get("/users/{user_id}/fading-runs", response_model=FadingRunPage)
async def runs(
    user_id: User, services: ServicesOf, caller: MemoryReader, after: After = None, limit: Limit = 50
) -> Any:
    """Reports of runs, newest first. A night that found nothing leaves none."""
    caller.act_for(user_id)
    items = await services.maintenance.fading.runs(caller.tenant_id, user_id, after=cursor_of(after), limit=limit)
    return {
        "items": [_view(item) for item in items],
        "next": next_of([(item.created_at, item.id) for item in items], limit),
    }


@router.get("/users/{user_id}/fading-runs/{run_id}", response_model=FadingRunView)
async def report(user_id: User, run_id: UUID, services: ServicesOf, caller: MemoryReader) -> Any:
    """Report of one run."""
    caller.act_for(user_id)
    return _view(await services.maintenance.fading.report(caller.tenant_id, user_id, run_id))


@router.post(
    "/users/{user_id}/fading-runs/{run_id}/undo",
    response_model=FadingRunView,
    responses=documented(HTTPStatus.CONFLICT),
)
async def undo(user_id: User, run_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Bring back exactly what a run took; 409 if it was undone before, or what it removed is gone for good."""
    caller.act_for(user_id)
    return _view(await services.maintenance.fading.undo(caller.tenant_id, user_id, run_id))


async def _policy(services: Services, caller: Caller, tried: FadingQuery) -> MaintenancePolicy:
    """The tenant's policy with the figures that the caller tries."""
    stored = await services.maintenance.policies.of(caller.tenant_id)
    return replace(stored, **tried.model_dump(exclude_none=True))


def _view(report: FadingRun) -> dict[str, Any]:
    return {**vars(report), "count": len(report.episode_ids)}
