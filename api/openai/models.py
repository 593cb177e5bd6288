"""`GET /v1/models`: experts as models, under the names that settings give them; errors as clients read them."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel

from api.access import Chatter
from api.console.demo_player import DEMO_EXPERT
from api.request_bodies import JsonRoute
from services.bootstrap import Services
from services.conversations.experts import Expert
from services.errors import NotFound
from services.llm.offered_models import OWNER
from services.validation import is_id


class ModelNotFound(NotFound):
    """The model does not exist."""

    code = "model_not_found"


class _Error(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """An error document in OpenAI's form."""

    error: _Error


def documented_errors(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of these error answers."""
    everywhere = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
    return {int(status): {"description": status.phrase, "model": ErrorBody} for status in (*statuses, *everywhere)}


router = APIRouter(
    route_class=JsonRoute,
    prefix="/v1/models",
    tags=["openai"],
    responses=documented_errors(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE),
)

_MOST = 1000


class ModelView(BaseModel):
    """An expert, as OpenAI's and Anthropic's clients list models."""

    id: str
    object: Literal["model"] = "model"
    type: Literal["model"] = "model"
    created: int
    created_at: datetime
    display_name: str
    owned_by: Literal["anamnesis"] = OWNER
    name: str


EMBEDDING = "embedding"
"""Name under which the encoder is listed beside the experts, whichever encoder is configured."""
_NEVER = datetime.fromtimestamp(0, UTC)


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[ModelView]
    has_more: Literal[False] = False
    first_id: str | None
    last_id: str | None


@router.get("", response_model=ModelList)
async def models(caller: Chatter) -> ModelList:
    """Return the experts, without the demo's, followed by the aliases of experts that exist."""
    experts = {
        each.name: each for each in await caller.services.experts.page(caller.tenant_id, after=None, limit=_MOST)
    }
    aliases = caller.services.settings.openai_model_aliases
    listed = [_view(each.name, each.created_at) for each in experts.values() if each.name != DEMO_EXPERT]
    listed += [_view(name, experts[expert].created_at) for name, expert in aliases.items() if expert in experts]
    if not caller.services.embedder.by_words_alone and EMBEDDING not in experts:
        listed.append(_view(EMBEDDING, _NEVER))
    ids = [each.id for each in listed]
    return ModelList(data=listed, first_id=ids[0] if ids else None, last_id=ids[-1] if ids else None)


@router.get("/{model}", response_model=ModelView)
async def model(model: str, caller: Chatter) -> ModelView:
    """One model, by its own name or an alias."""
    if model == EMBEDDING and not caller.services.embedder.by_words_alone:
        return _view(EMBEDDING, _NEVER)
    return _view(model, (await expert_of(caller.services, caller.tenant_id, model)).created_at)


async def expert_of(services: Services, tenant_id: UUID, model: str) -> Expert:
    """The expert behind a model's name. Raises `ModelNotFound` if there is none."""
    try:
        return await services.experts.get(tenant_id, expert_name(services, model))
    except NotFound:
        raise ModelNotFound(f"There is no model {model!r}; GET /v1/models lists them.") from None


def expert_name(services: Services, model: str) -> str:
    """The name of the expert that a model's name stands for. Raises `ModelNotFound` if no expert can have this
    name."""
    name = services.settings.openai_model_aliases.get(model, model)
    if not is_id(name):
        raise ModelNotFound(f"There is no model {model[:80]!r}; GET /v1/models lists them.")
    return name


def _view(name: str, at: datetime) -> ModelView:
    return ModelView(id=name, created=int(at.timestamp()), created_at=at, display_name=name, name=name)
