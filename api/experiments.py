"""Experiments: variants of settings, assigned to users by a stable hash, and their results."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Body, Path

from api.access import Admin, ServicesOf
from api.experiment_schemas import (
    ExperimentChangeRequest,
    ExperimentReportView,
    ExperimentRequest,
    ExperimentView,
)
from api.json_router import NO_CONTENT, json_router
from api.paging import AfterName, Limit, page_by_name
from api.problems import documented
from api.schemas import Page
from services.conversations.values import Id
from services.experiments.experiments import NewExperiment

router = json_router("/api/v1/experiments", "experiments")

Name = Annotated[Id, Path()]
_NOT_FOUND = documented(HTTPStatus.NOT_FOUND)
_CONFLICT = documented(HTTPStatus.CONFLICT)


@router.get("", response_model=Page[ExperimentView])
async def experiments(
    services: ServicesOf,
    caller: Admin,
    after: AfterName = None,
    limit: Limit = 50,
) -> Any:
    """Experiments of the tenant, by name."""
    items = await services.experiments.page(caller.tenant_id, after=after, limit=limit)
    return page_by_name(items, limit)


@router.post("", response_model=ExperimentView, status_code=HTTPStatus.CREATED, responses=_CONFLICT)
async def create(body: ExperimentRequest, services: ServicesOf, caller: Admin) -> Any:
    """Draft an experiment; 409 when there is one of this name."""
    return await services.experiments.create(caller.tenant_id, NewExperiment(**body.model_dump()))


@router.get("/{name}", response_model=ExperimentView, responses=_NOT_FOUND)
async def get(name: Name, services: ServicesOf, caller: Admin) -> Any:
    """One experiment."""
    return await services.experiments.get(caller.tenant_id, name)


@router.patch("/{name}", response_model=ExperimentView, responses=_NOT_FOUND | _CONFLICT)
async def change(
    name: Name, changed: Annotated[ExperimentChangeRequest, Body()], services: ServicesOf, caller: Admin
) -> Any:
    """Change, start or stop an experiment; 409 for what cannot change once it was started."""
    return await services.experiments.change(caller.tenant_id, name, changed)


@router.delete("/{name}", **NO_CONTENT, responses=_NOT_FOUND | _CONFLICT)
async def delete(name: Name, services: ServicesOf, caller: Admin) -> None:
    """Remove an experiment; 409 while it runs."""
    await services.experiments.delete(caller.tenant_id, name)


@router.get("/{name}/report", response_model=ExperimentReportView, responses=_NOT_FOUND)
async def report(name: Name, services: ServicesOf, caller: Admin) -> Any:
    """Results of each variant so far, and differences from the first, with 95 % confidence intervals."""
    return await services.experiment_reports.report(caller.tenant_id, name)
