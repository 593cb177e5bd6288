"""The service itself: what the caller may do, whether it is well, its metrics, and the choice of its model."""

from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field

from api.access import FOR_OPERATORS, KnownCaller, OfServiceAdmins, ServicesOf, is_operator
from api.problems import CONFLICT, documented
from api.request_bodies import JsonRoute
from api.schemas import Answer, ReadinessView, StrictModel, answered
from services.errors import Conflict
from services.health import Dependency, check_dependencies, measure_jobs, overall
from services.identity.caller import SCOPES
from services.identity.caller import Scope as AccessScope
from services.llm.model_checks import (
    PROVIDERS,
    ModelCheck,
    Offered,
    Provider,
    Tried,
    check_models,
    models_of,
    try_model,
)
from services.platform.chosen_model import ChosenModel, choose_model, chosen_model
from services.platform.metrics import exposition
from services.platform.outgoing import OutgoingHttp
from services.platform.settings_reference import effective_settings

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
async def service(caller: KnownCaller) -> ServiceView:
    """Which models answer, which limits hold, and what the caller may do."""
    settings = caller.services.settings
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


health_router = APIRouter(route_class=JsonRoute, tags=["health"])


@health_router.get("/api/v1/health", response_class=PlainTextResponse, include_in_schema=False)
@health_router.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether the process is alive."""
    return "ok"


@health_router.get("/readyz", response_model=ReadinessView, responses={503: {"model": ReadinessView}})
async def readyz(connection: Request, services: ServicesOf) -> JSONResponse:
    """Whether the service can answer and, for operators, the state of each dependency; 503 if busy or down."""
    dependencies = await check_dependencies(services)
    state: str = overall(dependencies)
    if state != "down" and connection.state.runner.busy:
        state = "busy"
    status = HTTPStatus.SERVICE_UNAVAILABLE if state in {"busy", "down"} else HTTPStatus.OK
    shown = dependencies if await is_operator(connection) else []
    return JSONResponse({"state": state, "dependencies": [asdict(each) for each in shown]}, status)


@health_router.get("/metrics", response_class=PlainTextResponse, dependencies=[FOR_OPERATORS])
async def metrics(connection: Request, services: ServicesOf) -> Response:
    """Metrics in Prometheus' text format; in OpenMetrics, with exemplars, for those who accept it."""
    await measure_jobs(services.jobs)
    content, media_type = exposition(connection.headers.get("accept", ""))
    return Response(content, media_type=media_type)


doctor_router = APIRouter(
    route_class=JsonRoute, prefix="/api/v1/doctor", tags=["health"], responses=documented(HTTPStatus.FORBIDDEN)
)


class DoctorView(Answer):
    """The state of the service and its models."""

    dependencies: list[Dependency]
    models: list[ModelCheck]


@doctor_router.post("", response_model=DoctorView, dependencies=[OfServiceAdmins])
async def doctor(services: ServicesOf) -> Any:
    """Check every dependency and send each configured model a few tiny requests, which are billed as usual.

    Only for admins of the default tenant, because models belong to the whole service.
    """
    models = await check_models(services.settings, services.models, services.embedder)
    return {"dependencies": await check_dependencies(services), "models": models}


model_router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/model",
    tags=["service"],
    dependencies=[OfServiceAdmins],
    responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY),
)

_SHOWN = 4


class ModelView(Answer):
    """The model in use, and where it was named."""

    source: Literal["environment", "console", "none"] = Field(
        description="`environment` includes `.env`; `none`: the built-in offline model answers."
    )
    model: str | None
    base_url: str | None
    api: Literal["responses", "chat"]
    key: str | None = Field(description="The last four characters of its key.")
    restarts: bool = Field(description="Whether the service restarts by itself when another one is chosen.")
    providers: list[Provider] = Field(description="Well-known ones; others are typed in.")


class Endpoint(StrictModel):
    """An endpoint to be asked for its models."""

    base_url: str = Field(pattern=r"^https?://[^\s]+$", max_length=2_000)
    api_key: str | None = Field(None, min_length=1, max_length=2_000)


@model_router.get("", response_model=ModelView)
async def model(services: ServicesOf, request: Request) -> ModelView:
    """Return the model in use and where it was named."""
    settings = services.settings
    secret = settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
    source = next(each.source for each in effective_settings(settings) if each.variable.endswith("_LLM_MODEL"))
    return ModelView(
        source="none" if settings.offline else "console" if source == "console" else "environment",
        model=settings.llm_model,
        base_url=settings.llm_base_url,
        api=settings.llm_api,
        key=f"…{secret[-_SHOWN:]}" if len(secret) > 2 * _SHOWN else "…" if secret else None,
        restarts=_restart_of(request) is not None,
        providers=list(PROVIDERS),
    )


@model_router.post("/models", response_model=answered(Offered))
async def models(endpoint: Endpoint) -> Offered:
    """Ask an endpoint for the names of its models."""
    http = OutgoingHttp()
    try:
        return await models_of(http, endpoint.base_url, endpoint.api_key)
    finally:
        await http.close()


@model_router.post("/try", response_model=answered(Tried))
async def try_(chosen: ChosenModel, services: ServicesOf) -> Tried:
    """Send a model one short message, which is billed as usual; nothing is kept."""
    return await try_model(services.settings, chosen)


@model_router.put("", status_code=HTTPStatus.NO_CONTENT, responses=CONFLICT)
async def choose(chosen: ChosenModel, services: ServicesOf, request: Request) -> None:
    """Keep a model in the data folder, and restart the service with it, if it can."""
    _change(services.settings, chosen, request)


@model_router.delete("", status_code=HTTPStatus.NO_CONTENT, responses=CONFLICT)
async def forget(services: ServicesOf, request: Request) -> None:
    """Forget the model that was chosen: from the restart on the built-in one answers."""
    _change(services.settings, None, request)


def _change(settings: Any, chosen: ChosenModel | None, request: Request) -> None:
    if not settings.offline and chosen_model(settings.data_dir) is None:
        raise Conflict("The environment names the model (ANAMNESIS_LLM_MODEL); change it there.")
    choose_model(settings.data_dir, chosen)
    if (restart := _restart_of(request)) is not None:
        restart()


def _restart_of(request: Request) -> Callable[[], None] | None:
    found: Callable[[], None] | None = getattr(request.app.state, "restart", None)
    return found
