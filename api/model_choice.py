"""`/api/v1/model`: the language model that an admin chooses where the environment names none."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from api.access import OfServiceAdmins, ServicesOf
from api.problems import documented
from api.request_bodies import JsonRoute
from api.schemas import Answer, StrictModel, answered
from services.errors import Conflict
from services.llm.model_checks import PROVIDERS, Offered, Provider, Tried, models_of, try_model
from services.platform.chosen_model import ChosenModel, choose_model, chosen_model
from services.platform.outgoing import OutgoingHttp
from services.platform.settings_reference import effective_settings

router = APIRouter(
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


@router.get("", response_model=ModelView)
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


@router.post("/models", response_model=answered(Offered))
async def models(endpoint: Endpoint) -> Offered:
    """Ask an endpoint for the names of its models."""
    http = OutgoingHttp()
    try:
        return await models_of(http, endpoint.base_url, endpoint.api_key)
    finally:
        await http.close()


@router.post("/try", response_model=answered(Tried))
async def try_(chosen: ChosenModel, services: ServicesOf) -> Tried:
    """Send a model one short message, which is billed as usual; nothing is kept."""
    return await try_model(services.settings, chosen)


@router.put("", status_code=HTTPStatus.NO_CONTENT, responses=documented(HTTPStatus.CONFLICT))
async def choose(chosen: ChosenModel, services: ServicesOf, request: Request) -> None:
    """Keep a model in the data folder, and restart the service with it, if it can."""
    _change(services.settings, chosen, request)


@router.delete("", status_code=HTTPStatus.NO_CONTENT, responses=documented(HTTPStatus.CONFLICT))
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
