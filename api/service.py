"""The service itself: what the caller may do, whether it is well, and its metrics."""

import asyncio
from dataclasses import asdict
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field

from api.access import FOR_OPERATORS, KnownCaller, OfServiceAdmins, ServicesOf, is_operator
from api.problems import documented
from api.request_bodies import JsonRoute
from api.schemas import Answer, ReadinessView
from services.errors import Unavailable
from services.health import Dependency, check_dependencies, for_strangers, measure, overall
from services.identity.caller import SCOPES
from services.identity.caller import Scope as AccessScope
from services.llm.model_checks import ModelCheck, check_models
from services.memory.filing.grade import GradeFound, grade_filing
from services.platform.metrics import exposition

router = APIRouter(route_class=JsonRoute, prefix="/api/v1/service", tags=["service"])


class LimitsView(BaseModel):
    """Limits that are set for this service; null = none."""

    context_budget_tokens: int
    turns_per_user_per_minute: int | None
    requests_per_tenant_per_minute: int | None
    turns_at_once: int
    message_characters: int = Field(description="Characters of the longest message of a user.")


class ServiceView(BaseModel):
    """The service as the caller sees it."""

    version: str
    auth: Literal["none", "api_key", "jwt"]
    tenant_id: UUID
    scopes: list[AccessScope] = Field(description="What the caller may do; `admin` includes the others.")
    user_id: str | None = Field(description="The one user for whom the caller may act; null = every user.")
    offline: bool = Field(description="Whether the built-in offline model answers.")
    model: str | None
    model_source: Literal["environment", "console", "none"] = Field(
        description="Where the model was named; `environment` includes `.env`, `none` is the built-in one."
    )
    small_model: str | None
    embedding_model: str | None
    default_timezone: str
    limits: LimitsView


@router.get("", response_model=ServiceView)
async def service(caller: KnownCaller) -> ServiceView:
    """Tell which models answer, which limits hold, and what the caller may do."""
    settings = caller.services.settings
    return ServiceView(
        version=version("anamnesis-agent"),
        auth=settings.auth,
        tenant_id=caller.tenant_id,
        scopes=[scope for scope in SCOPES if scope in caller.scopes or "admin" in caller.scopes],
        user_id=caller.user_id,
        offline=settings.offline,
        model=settings.llm_model,
        model_source="none"
        if settings.offline
        else "console"
        if settings.from_console("llm_model")
        else "environment",
        small_model=settings.small_llm_model,
        embedding_model=settings.embedding_model,
        default_timezone=settings.default_timezone,
        limits=LimitsView(
            context_budget_tokens=settings.context_budget_tokens,
            turns_per_user_per_minute=settings.turns_per_minute,
            requests_per_tenant_per_minute=settings.requests_per_minute,
            turns_at_once=settings.turns_max,
            message_characters=settings.message_characters,
        ),
    )


health_router = APIRouter(route_class=JsonRoute, tags=["health"])


@health_router.get("/api/v1/health", response_class=PlainTextResponse, include_in_schema=False)
@health_router.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether the process is alive."""
    return "ok"


@health_router.get("/readyz", response_model=ReadinessView, responses={503: {"model": ReadinessView}})
async def readyz(connection: Request, services: ServicesOf) -> JSONResponse:
    """Whether the service can answer and, for operators, the state of each dependency; 503 if busy or down.

    It answers within two seconds. While keys cannot be checked, senders of a key see the states without details.
    """
    dependencies, shown_to = await asyncio.gather(check_dependencies(services), _known_operator(connection))
    state: str = overall(dependencies)
    if state != "down" and connection.state.runner.busy:
        state = "busy"
    status = HTTPStatus.SERVICE_UNAVAILABLE if state in {"busy", "down"} else HTTPStatus.OK
    shown = for_strangers(dependencies) if shown_to is None else dependencies if shown_to else []
    return JSONResponse({"state": state, "dependencies": [asdict(each) for each in shown]}, status)


async def _known_operator(connection: Request) -> bool | None:
    """Return whether the caller is an operator; None while keys cannot be checked."""
    try:
        return await is_operator(connection)
    except Unavailable:
        return None


@health_router.get("/metrics", response_class=PlainTextResponse, dependencies=[FOR_OPERATORS])
async def metrics(connection: Request, services: ServicesOf) -> Response:
    """Metrics in Prometheus' text format; in OpenMetrics, with exemplars, for those who accept it."""
    await measure(services)
    content, media_type = exposition(connection.headers.get("accept", ""))
    return Response(content, media_type=media_type)


doctor_router = APIRouter(
    route_class=JsonRoute, prefix="/api/v1/doctor", tags=["health"], responses=documented(HTTPStatus.FORBIDDEN)
)


class DoctorView(Answer):
    """The state of the service and its models."""

    dependencies: list[Dependency]
    models: list[ModelCheck]
    filing: GradeFound | None = Field(description="How well the small model files; null without a model.")


@doctor_router.post("", response_model=DoctorView, dependencies=[OfServiceAdmins])
async def doctor(services: ServicesOf) -> Any:
    """Check every dependency and send each configured model a few tiny requests, which are billed as usual.

    Only for admins of the default tenant, because models belong to the whole service.
    """
    models = await check_models(services.settings, services.models, services.embedder)
    filing = await grade_filing(services.models)
    return {"dependencies": await check_dependencies(services), "models": models, "filing": filing}
