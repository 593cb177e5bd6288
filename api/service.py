"""The service's version and features, and what the caller may do with it."""

from importlib.metadata import version
from typing import Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.access import KnownCaller, ServicesOf
from api.request_bodies import JsonRoute
from services.identity.caller import SCOPES
from services.identity.caller import Scope as AccessScope

router = APIRouter(route_class=JsonRoute, prefix="/api/v1/service", tags=["service"])


class LimitsView(BaseModel):
    """Limits that are set for this service; null = none."""

    context_budget_tokens: int
    turns_per_user_per_minute: int | None
    requests_per_tenant_per_minute: int | None
    turns_at_once: int


class ServiceView(BaseModel):
    """The service as the caller sees it."""

    version: str
    auth: Literal["none", "api_key", "jwt"]
    tenant_id: UUID
    scopes: list[AccessScope] = Field(description="What the caller may do; `admin` includes the others.")
    user_id: str | None = Field(description="The one user for whom the caller may act; null = every user.")
    offline: bool = Field(description="Whether the built-in offline model answers.")
    model: str | None
    small_model: str | None
    embedding_model: str | None
    default_timezone: str
    limits: LimitsView


@router.get("", response_model=ServiceView)
async def service(services: ServicesOf, caller: KnownCaller) -> ServiceView:
    """Which models answer, which limits hold, and what the caller may do."""
    settings = services.settings
    return ServiceView(
        version=version("anamnesis-agent"),
        auth=settings.auth,
        tenant_id=caller.tenant_id,
        scopes=[scope for scope in SCOPES if scope in caller.scopes or "admin" in caller.scopes],
        user_id=caller.user_id,
        offline=settings.offline,
        model=settings.llm_model,
        small_model=settings.small_llm_model,
        embedding_model=settings.embedding_model,
        default_timezone=settings.default_timezone,
        limits=LimitsView(
            context_budget_tokens=settings.context_budget_tokens,
            turns_per_user_per_minute=settings.turns_per_minute,
            requests_per_tenant_per_minute=settings.requests_per_minute,
            turns_at_once=settings.turns_max,
        ),
    )
