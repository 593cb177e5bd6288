"""`POST /api/v1/doctor`: checks every dependency of the running service, and its models with real requests."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter

from api.access import OfServiceAdmins, ServicesOf
from api.problems import documented
from api.request_bodies import JsonRoute
from api.schemas import Answer
from services.health import Dependency, check_dependencies
from services.llm.model_checks import ModelCheck, check_models

router = APIRouter(
    route_class=JsonRoute, prefix="/api/v1/doctor", tags=["health"], responses=documented(HTTPStatus.FORBIDDEN)
)


class DoctorView(Answer):
    """The state of the service and its models."""

    dependencies: list[Dependency]
    models: list[ModelCheck]


@router.post("", response_model=DoctorView, dependencies=[OfServiceAdmins])
async def doctor(services: ServicesOf) -> Any:
    """Check every dependency and send each configured model a few tiny requests, which are billed as usual.

    Only for admins of the default tenant, because models belong to the whole service.
    """
    models = await check_models(services.settings, services.models, services.embedder)
    return {"dependencies": await check_dependencies(services), "models": models}
