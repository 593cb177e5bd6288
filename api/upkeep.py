"""Upkeep of memory: the tenant's policy, and runs that merge what says the same and let unused memories fade."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, Field

from api.access import Admin, KnownCaller, MemoryReader, MemoryWriter, ServicesOf
from api.paging import After, Limit, PathId, cursor_of, json_router, page_by_time
from api.problems import documented
from api.schemas import Answer, Page, StrictModel, answered
from services.bootstrap import Services
from services.identity.caller import Caller
from services.memory.upkeep.policy import FadingMemory, UpkeepPolicy, UpkeepRun, change_policy, policy_of


class FadingQuery(StrictModel):
    """Figures to try in place of the tenant's policy; those not given are the policy's."""

    fading: Literal["archive"] | None = Field(None, description="Archive them, whatever the policy says.")
    fading_days: int | None = Field(None, ge=1, le=36_500, description="Days without use.")
    fading_importance: float | None = Field(None, ge=0, le=1, description="Importance below which they fade.")


class MergeView(BaseModel):
    """A memory that another one says as well."""

    id: UUID = Field(description="The memory that goes.")
    kept_id: UUID = Field(description="The memory, or section of core memory, that stays.")
    content: str
    kept_content: str
    kept_in_core: bool


class UpkeepPreviewView(Answer):
    """What a run would do at this moment."""

    policy: UpkeepPolicy
    merges: list[MergeView]
    total: int = Field(description="Memories that would fade.")
    fading: list[FadingMemory] = Field(description="The first 1000 of them, longest unused first.")


router = json_router("/api/v1", "memory", HTTPStatus.NOT_FOUND)


@router.get("/upkeep-policy", response_model=UpkeepPolicy)
async def policy(services: ServicesOf, caller: KnownCaller) -> Any:
    """Policy by which memories of the tenant's users fade."""
    return await policy_of(services.database, caller.tenant_id)


@router.put("/upkeep-policy", response_model=UpkeepPolicy)
async def set_policy(body: UpkeepPolicy, services: ServicesOf, caller: Admin) -> Any:
    """Set the tenant's policy as a whole; it holds from the next run on."""
    await change_policy(services.database, caller.tenant_id, body)
    return body


@router.get("/users/{user_id}/upkeep-preview", response_model=UpkeepPreviewView)
async def preview(
    user_id: PathId, services: ServicesOf, caller: MemoryReader, query: Annotated[FadingQuery, Query()]
) -> Any:
    """What a run would merge or archive now, and why; nothing is changed."""
    found = await services.upkeep.preview(caller.tenant_id, user_id, await _policy(services, caller, query))
    return {
        "policy": found.policy,
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
async def run(user_id: PathId, body: FadingQuery, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Merge what says the same, and let unused memories fade now; where the policy says `never`, none do."""
    return await services.upkeep.run(caller.tenant_id, user_id, await _policy(services, caller, body))


@router.get("/users/{user_id}/upkeep-runs", response_model=Page[UpkeepRun])
async def runs(
    user_id: PathId, services: ServicesOf, caller: MemoryReader, after: After = None, limit: Limit = 50
) -> Any:
    """Reports of runs, newest first. A night that found nothing leaves none."""
    items = await services.upkeep.runs(caller.tenant_id, user_id, after=cursor_of(after), limit=limit)
    return page_by_time(items, limit)


@router.get("/users/{user_id}/upkeep-runs/{run_id}", response_model=answered(UpkeepRun))
async def report(user_id: PathId, run_id: UUID, services: ServicesOf, caller: MemoryReader) -> Any:
    """Report of one run."""
    return await services.upkeep.report(caller.tenant_id, user_id, run_id)


@router.post(
    "/users/{user_id}/upkeep-runs/{run_id}/undo",
    response_model=answered(UpkeepRun),
    responses=documented(HTTPStatus.CONFLICT),
)
async def undo(user_id: PathId, run_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Bring back exactly what a run took; 409 if it was undone before."""
    return await services.upkeep.undo(caller.tenant_id, user_id, run_id)


async def _policy(services: Services, caller: Caller, tried: FadingQuery) -> UpkeepPolicy:
    """The tenant's policy with the figures that the caller tries."""
    stored = await policy_of(services.database, caller.tenant_id)
    return replace(stored, **tried.model_dump(exclude_none=True))
