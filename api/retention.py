"""Retention: a tenant's rules, what they would remove, and removing it."""

from http import HTTPStatus
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.access import Admin, ServicesOf
from api.json_router import json_router
from api.paging import Limit
from api.problems import documented
from api.schemas import Page, StrictModel, answered
from services.memory.removal.expiry import KINDS, LONGEST_DAYS, Kind, RetentionReport, StoredReport

_LONGEST_RUN_S = 300.0

router = json_router("/api/v1/retention", "retention")

Days = Annotated[int, Field(ge=1, le=LONGEST_DAYS)]


class RetentionRulesView(StrictModel):
    """For how many days each kind is kept; null = as long as the service keeps it anyway."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"messages": 365, "turns": 30}]})

    messages: Days | None = Field(None, description="Conversations in which nothing was said since.")
    turns: Days | None = Field(None, description="Prompts, reports and requests of turns.")
    jobs: Days | None = Field(None, description="Finished background jobs.")
    operations: Days | None = Field(None, description="The log of memory, which undo needs.")

    def by_kind(self) -> dict[Kind, int | None]:
        """The rule of each kind."""
        return {kind: getattr(self, kind) for kind in KINDS}


class RunRequest(StrictModel):
    """How long a run may take."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seconds": 20}]})

    seconds: float = Field(20.0, gt=0, le=_LONGEST_RUN_S)


@router.get("", response_model=RetentionRulesView)
async def rules(services: ServicesOf, caller: Admin) -> Any:
    """The tenant's rules."""
    return await services.retention_rules.of(caller.tenant_id)


@router.put("", response_model=RetentionRulesView)
async def set_rules(body: RetentionRulesView, services: ServicesOf, caller: Admin) -> Any:
    """Set the tenant's rules; those that are not named are removed. They apply from the next night on."""
    return await services.retention_rules.change(caller.tenant_id, body.by_kind())


@router.post("/preview", response_model=answered(RetentionReport))
async def preview(services: ServicesOf, caller: Admin, body: RetentionRulesView | None = None) -> Any:
    """Count what the rules would remove now, or what other rules would; nothing is removed."""
    tried = None
    if body is not None:
        tried = {kind: days for kind, days in body.by_kind().items() if days is not None}
    return await services.retention.preview(caller.tenant_id, tried)


@router.post("/run", response_model=answered(RetentionReport), responses=documented(HTTPStatus.CONFLICT))
async def run(services: ServicesOf, caller: Admin, body: RunRequest | None = None) -> Any:
    """Remove it now, for some seconds at most; 409 while another run of the tenant is under way."""
    return await services.retention.run(caller.tenant_id, seconds=(body or RunRequest()).seconds)


@router.get("/runs", response_model=Page[StoredReport])
async def runs(services: ServicesOf, caller: Admin, limit: Limit = 50) -> Any:
    """Reports of earlier runs, newest first."""
    return {"items": await services.retention.reports(caller.tenant_id, limit=limit)}
