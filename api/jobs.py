"""Background jobs: list them, and retry failed ones."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query

from api.access import Admin, ServicesOf
from api.json_router import json_router
from api.paging import Limit
from api.problems import documented
from api.schemas import Page, answered
from services.jobs.records import JobStatus, StoredJob

_LARGEST_ID = 2**63 - 1

router = json_router("/api/v1/jobs", "jobs", HTTPStatus.NOT_FOUND)


@router.get("", response_model=Page[StoredJob])
async def jobs(
    services: ServicesOf,
    caller: Admin,
    status: JobStatus | None = None,
    after: Annotated[int | None, Query(ge=1, le=_LARGEST_ID, description="The `next` of the page before.")] = None,
    limit: Limit = 50,
) -> Any:
    """Jobs of the tenant, newest first. The default tenant also sees those of the service itself."""
    items = await services.jobs.records.page(caller.tenant_id, status=status, after=after, limit=limit)
    return {"items": items, "next": str(items[-1].id) if len(items) == limit else None}


@router.post("/{job_id}/retry", response_model=answered(StoredJob), responses=documented(HTTPStatus.CONFLICT))
async def retry(job_id: Annotated[int, Path(ge=1, le=_LARGEST_ID)], services: ServicesOf, caller: Admin) -> Any:
    """Let a failed job run again, with all its tries; 409 if it has not failed."""
    return await services.jobs.records.retry(caller.tenant_id, job_id)
