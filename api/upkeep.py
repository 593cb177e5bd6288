"""Upkeep of memory: the tenant's policy, and runs that merge what says the same and let unused memories fade."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from pydantic import Field

from api.access import Admin, KnownCaller, ReadUser, UserOfPath, WrittenUser
from api.paging import Paged, json_router
from api.problems import CONFLICT
from api.schemas import Page, StrictModel, answered
from services.memory.upkeep.policy import UpkeepPolicy, UpkeepPreview, UpkeepRun, change_policy, policy_of


class FadingQuery(StrictModel):
    """Figures to try in place of the tenant's policy; those not given are the policy's."""

    fading: Literal["archive"] | None = Field(None, description="Archive them, whatever the policy says.")
    fading_days: int | None = Field(None, ge=1, le=36_500, description="Days without use.")
    fading_importance: float | None = Field(None, ge=0, le=1, description="Importance below which they fade.")


router = json_router("/api/v1", "memory", HTTPStatus.NOT_FOUND)


@router.get("/upkeep-policy", response_model=UpkeepPolicy)
async def policy(caller: KnownCaller) -> Any:
    """Policy by which memories of the tenant's users fade."""
    return await policy_of(caller.services.database, caller.tenant_id)


@router.put("/upkeep-policy", response_model=UpkeepPolicy)
async def set_policy(body: UpkeepPolicy, caller: Admin) -> Any:
    """Set the tenant's policy as a whole; it holds from the next run on."""
    await change_policy(caller.services.database, caller.tenant_id, body)
    return body


@router.get("/users/{user_id}/upkeep-preview", response_model=answered(UpkeepPreview))
async def preview(user: ReadUser, query: Annotated[FadingQuery, Query()]) -> Any:
    """Preview what a run would merge or archive now, and why; nothing is changed."""
    return await user.services.upkeep.preview(*user.named, await _policy(user, query))


@router.post("/users/{user_id}/upkeep-runs", response_model=answered(UpkeepRun), status_code=HTTPStatus.CREATED)
async def run(user: WrittenUser, body: FadingQuery) -> Any:
    """Merge what says the same, and let unused memories fade now; where the policy says `never`, none do."""
    return await user.services.upkeep.run(*user.named, await _policy(user, body))


@router.get("/users/{user_id}/upkeep-runs", response_model=Page[UpkeepRun])
async def runs(user: ReadUser, page: Paged) -> Any:
    """Reports of runs, newest first. A night that found nothing leaves none."""
    return page.of(await user.services.upkeep.runs(*user.named, **vars(page)))


@router.get("/users/{user_id}/upkeep-runs/{run_id}", response_model=answered(UpkeepRun))
async def report(user: ReadUser, run_id: UUID) -> Any:
    """Report of one run."""
    return await user.services.upkeep.report(*user.named, run_id)


@router.post("/users/{user_id}/upkeep-runs/{run_id}/undo", response_model=answered(UpkeepRun), responses=CONFLICT)
async def undo(user: WrittenUser, run_id: UUID) -> Any:
    """Bring back exactly what a run took; 409 if it was undone before."""
    return await user.services.upkeep.undo(*user.named, run_id)


async def _policy(user: UserOfPath, tried: FadingQuery) -> UpkeepPolicy:
    """Return the tenant's policy with the figures that the caller tries."""
    stored = await policy_of(user.services.database, user.caller.tenant_id)
    return replace(stored, **tried.model_dump(exclude_none=True))
