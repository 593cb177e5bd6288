"""`POST /api/v1/doctor`: checks every dependency of the running service, and its models with real requests."""

from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.access import Admin, ServicesOf
from api.problems import documented
from api.request_bodies import JsonRoute
from api.schemas import DependencyView
from services.errors import Forbidden
from services.health import check_dependencies
from services.identity.tenants import DEFAULT_TENANT
from services.llm.model_checks import Acceptance, AcceptedForm, check_models

router = APIRouter(
    route_class=JsonRoute, prefix="/api/v1/doctor", tags=["health"], responses=documented(HTTPStatus.FORBIDDEN)
)


class ModelCheckView(BaseModel):
    """What a model answered to a few tiny requests."""

    roles: list[Literal["main", "small", "fallback", "embedding"]]
    model: str
    answers: bool
    streams: bool = Field(description="Whether the answer came in several pieces.")
    tools: Acceptance
    json_schema: Acceptance = Field(description="`ignored`: it answered, but not with such JSON.")
    messages: AcceptedForm = Field(description="The most liberal form of messages that it accepts.")
    dimensions: int | None = Field(description="Dimensions of an embedding.")
    answer_ms: float | None
    advice: list[str] = Field(description="What is wrong, with the endpoint's own message, and what to change.")


class DoctorView(BaseModel):
    """The state of the service and its models."""

    dependencies: list[DependencyView]
    models: list[ModelCheckView]


@router.post("", response_model=DoctorView)
async def doctor(services: ServicesOf, caller: Admin) -> Any:
    """Check every dependency and send each configured model a few tiny requests, which are billed as usual.

    Only for admins of the default tenant, because models belong to the whole service.
    """
    if caller.tenant_id != DEFAULT_TENANT:
        raise Forbidden("This needs a key of the default tenant.")
    models = await check_models(services.settings, services.models, services.embedder)
    return {"dependencies": await check_dependencies(services), "models": models}
