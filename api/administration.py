"""Endpoints for admins: retention of a tenant's data, background jobs, API keys, and the cost of models."""

from dataclasses import dataclass
from datetime import date, timedelta
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query
from pydantic import ConfigDict, Field, StringConstraints

from api.access import Admin, KnownCaller
from api.paging import Limit, json_router
from api.problems import CONFLICT, NOT_FOUND
from api.schemas import Answer, Page, StrictModel, answered
from services.conversations.values import Id
from services.errors import InvalidInput
from services.identity.api_keys import ApiKey
from services.identity.caller import Scope
from services.jobs.records import JobStatus, StoredJob
from services.memory.removal.expiry import KINDS, LONGEST_DAYS, Kind, RetentionReport, StoredReport
from services.usage.ledger import Dimension, UsageSum, today

_LONGEST_RUN_S = 300.0

retention_router = json_router("/api/v1/retention", "retention")

Days = Annotated[int, Field(ge=1, le=LONGEST_DAYS)]


class RetentionRulesView(StrictModel):
    """Days for which each kind is kept; null = as long as the service keeps it without a rule."""

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


@retention_router.get("", response_model=RetentionRulesView)
async def rules(caller: Admin) -> Any:
    """The tenant's rules."""
    return await caller.services.retention.rules(caller.tenant_id)


@retention_router.put("", response_model=RetentionRulesView)
async def set_rules(body: RetentionRulesView, caller: Admin) -> Any:
    """Set the tenant's rules; those that are not named are removed. They apply from the next night on."""
    return await caller.services.retention.change_rules(caller.tenant_id, body.by_kind())


@retention_router.post("/preview", response_model=answered(RetentionReport))
async def preview_retention(caller: Admin, body: RetentionRulesView | None = None) -> Any:
    """Count what the rules would remove now, or what other rules would; nothing is removed."""
    tried = None
    if body is not None:
        tried = {kind: days for kind, days in body.by_kind().items() if days is not None}
    return await caller.services.retention.preview(caller.tenant_id, tried)


@retention_router.post("/run", response_model=answered(RetentionReport), responses=CONFLICT)
async def run_retention(caller: Admin, body: RunRequest | None = None) -> Any:
    """Remove it now, for some seconds at most; 409 while another run of the tenant is under way."""
    return await caller.services.retention.run(caller.tenant_id, seconds=(body or RunRequest()).seconds)


@retention_router.get("/runs", response_model=Page[StoredReport])
async def retention_runs(caller: Admin, limit: Limit = 50) -> Any:
    """Reports of earlier runs, newest first."""
    return {"items": await caller.services.retention.reports(caller.tenant_id, limit=limit)}


_LARGEST_ID = 2**63 - 1

jobs_router = json_router("/api/v1/jobs", "jobs", HTTPStatus.NOT_FOUND)


@jobs_router.get("", response_model=Page[StoredJob])
async def jobs(
    caller: Admin,
    status: JobStatus | None = None,
    after: Annotated[int | None, Query(ge=1, le=_LARGEST_ID, description="The `next` of the page before.")] = None,
    limit: Limit = 50,
) -> Any:
    """Jobs of the tenant, newest first. The default tenant also sees those of the service itself."""
    items = await caller.services.jobs.records.page(caller.tenant_id, status=status, after=after, limit=limit)
    return {"items": items, "next": str(items[-1].id) if len(items) == limit else None}


@jobs_router.post("/{job_id}/retry", response_model=answered(StoredJob), responses=CONFLICT)
async def retry(job_id: Annotated[int, Path(ge=1, le=_LARGEST_ID)], caller: Admin) -> Any:
    """Let a failed job run again, with all its tries; 409 if it has not failed."""
    return await caller.services.jobs.records.retry(caller.tenant_id, job_id)


keys_router = json_router("/api/v1/keys", "keys")


class KeyRequest(StrictModel):
    """A key to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "web", "scopes": ["chat"]}]})

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(description="What it is for.")
    scopes: list[Scope] = Field(min_length=1)
    acts_for_headers: bool = Field(False, description="Whether a request's header may name its user.")
    default_user: Id | None = Field(None, description="User of requests that name none.")


@dataclass(frozen=True, kw_only=True)
class NewKeyView(ApiKey):
    """A key that was just made."""

    key: str
    """The key itself; it cannot be read again."""


@keys_router.get("", response_model=Page[ApiKey])
async def keys(caller: Admin) -> Any:
    """Every key of the tenant, including revoked ones."""
    return {"items": await caller.services.api_keys.list(caller.tenant_id)}


@keys_router.post("", response_model=answered(NewKeyView), status_code=HTTPStatus.CREATED)
async def create_key(body: KeyRequest, caller: Admin) -> Any:
    """Create a key. Keys are checked while `ANAMNESIS_AUTH=api_key`."""
    record, key = await caller.services.api_keys.create(caller.tenant_id, **body.model_dump())
    return {**vars(record), "key": key}


@keys_router.delete("/{key_id}", response_model=answered(ApiKey), responses=NOT_FOUND)
async def revoke_key(key_id: UUID, caller: Admin) -> Any:
    """Revoke a key; repeating it changes nothing."""
    return await caller.services.api_keys.revoke(caller.tenant_id, key_id)


usage_router = json_router("/api/v1", "usage")

_USUAL_DAYS = 30


class MemoryCostView(Answer):
    """Cost of memory's own work: filing, summaries, reflection and upkeep."""

    calls: int
    input_tokens: int
    output_tokens: int
    statements: int = Field(description="Changes of memory that filing made.")
    tokens_per_statement: float | None = Field(description="Tokens, in and out, for each; null = there are none.")


class UsagePage(Answer):
    """Sums, the largest first."""

    first: date
    last: date
    items: list[UsageSum]
    memory: MemoryCostView


@usage_router.get("/usage", response_model=UsagePage)
async def usage(
    caller: KnownCaller,
    first: Annotated[date | None, Query(description="The first day, of UTC; 30 days ago unless given.")] = None,
    last: Annotated[date | None, Query(description="The last day; today unless given.")] = None,
    by: Annotated[list[Dimension] | None, Query(description="What to split by; not given: one sum.")] = None,
    user_id: Annotated[Id | None, Query(description="Only what this user caused.")] = None,
    limit: Limit = 50,
) -> Any:
    """Tokens and calls of models, except for the last two seconds; those of others only with the scope `admin`."""
    if caller.user_id is not None:
        caller.act_for(user_id := user_id or caller.user_id)
    else:
        caller.require("admin")
    last = last or today()
    first = first or last - timedelta(days=_USUAL_DAYS)
    if first > last:
        raise InvalidInput("first", "is later than the last day")
    dimensions = list(dict.fromkeys(by or ()))
    items = await caller.services.usage.sums(caller.tenant_id, first, last, dimensions, user=user_id, limit=limit)
    memory = await caller.services.usage.memory(caller.tenant_id, first, last, user=user_id)
    return {"first": first, "last": last, "items": items, "memory": memory}
