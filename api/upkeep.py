"""Upkeep of memory: the tenant's policy, and runs that merge what says the same and let unused memories fade."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query

from api.access import Admin, KnownCaller, MemoryReader, MemoryWriter, ServicesOf
from api.json_router import json_router
from api.paging import After, Limit, cursor_of, next_of
from api.problems import documented
from api.schemas import Page, answered
from api.upkeep_schemas import FadingQuery, PolicyView, UpkeepPreviewView
from services.bootstrap import Services
from services.conversations.values import Id
from services.identity.caller import Caller
from services.memory.upkeep.policy import UpkeepPolicy
from services.memory.upkeep.run import UpkeepRun

router = json_router("/api/v1", "memory", HTTPStatus.NOT_FOUND)

User = Annotated[Id, Path()]


@router.get("/upkeep-policy", response_model=PolicyView)
async def policy(services: ServicesOf, caller: KnownCaller) -> Any:
    """Policy by which memories of the tenant's users fade, and proposals are settled."""
    return PolicyView.of(await services.upkeep.policies.of(caller.tenant_id))


@router.put("/upkeep-policy", response_model=PolicyView)
async def set_policy(body: PolicyView, services: ServicesOf, caller: Admin) -> Any:
    """Set the tenant's policy as a whole; it holds from the next run on."""
    await services.upkeep.policies.set(caller.tenant_id, body.policy())
    return body


@router.get("/users/{user_id}/upkeep-preview", response_model=UpkeepPreviewView)
async def preview(
    user_id: User, services: ServicesOf, caller: MemoryReader, query: Annotated[FadingQuery, Query()]
) -> Any:
    """What a run would merge, archive or remove now, and why; nothing is changed."""
    caller.act_for(user_id)
    found = await services.upkeep.preview(caller.tenant_id, user_id, await _policy(services, caller, query))
    return {
        "policy": PolicyView.of(found.policy),
        "merges": [
            {
                "id": each.dropped.side.id,
                "kept_id": each.kept.side.id,
                "content": each.dropped.content,
                "kept_content": each.kept.content,
                "kept_in_core": each.kept.in_core_memory,
            }
            for each in found.merges
        ],
        "total": found.total,
        "fading": found.fading,
    }


@router.post("/users/{user_id}/upkeep-runs", response_model=answered(UpkeepRun), status_code=HTTPStatus.CREATED)
async def run(user_id: User, body: FadingQuery, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Merge what says the same, and let unused memories fade now; where the policy says `never`, none do."""
    caller.act_for(user_id)
    return await services.upkeep.run(caller.tenant_id, user_id, await _policy(services, caller, body))


@router.get("/users/{user_id}/upkeep-runs", response_model=Page[UpkeepRun])
async def runs(
    user_id: User, services: ServicesOf, caller: MemoryReader, after: After = None, limit: Limit = 50
) -> Any:
    """Reports of runs, newest first. A night that found nothing leaves none."""
    caller.act_for(user_id)
    items = await services.upkeep.runs(caller.tenant_id, user_id, after=cursor_of(after), limit=limit)
    return {"items": items, "next": next_of([(item.created_at, item.id) for item in items], limit)}


@router.get("/users/{user_id}/upkeep-runs/{run_id}", response_model=answered(UpkeepRun))
async def report(user_id: User, run_id: UUID, services: ServicesOf, caller: MemoryReader) -> Any:
    """Report of one run."""
    caller.act_for(user_id)
    return await services.upkeep.report(caller.tenant_id, user_id, run_id)


@router.post(
    "/users/{user_id}/upkeep-runs/{run_id}/undo",
    response_model=answered(UpkeepRun),
    responses=documented(HTTPStatus.CONFLICT),
)
async def undo(user_id: User, run_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Bring back exactly what a run took; 409 if it was undone before, or what it removed is gone for good."""
    caller.act_for(user_id)
    return await services.upkeep.undo(caller.tenant_id, user_id, run_id)


async def _policy(services: Services, caller: Caller, tried: FadingQuery) -> UpkeepPolicy:
    """The tenant's policy with the figures that the caller tries."""
    stored = await services.upkeep.policies.of(caller.tenant_id)
    return replace(stored, **tried.model_dump(exclude_none=True))
