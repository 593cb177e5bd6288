"""`GET /v1/models`: experts as models, under the names that settings give them; errors as clients read them."""

from http import HTTPStatus
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel

from api.access import Chatter
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
    """OpenAI's error document."""

    error: _Error


def documented_errors(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI document on these error answers."""
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
    """An expert, as OpenAI's clients list models."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["anamnesis"] = OWNER
    name: str


EMBEDDING = "embedding"
"""Name of the encoder, whichever it is, beside the experts'."""
_EMBEDDING_VIEW = ModelView(id=EMBEDDING, created=0, name=EMBEDDING)


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[ModelView]


@router.get("", response_model=ModelList)
async def models(caller: Chatter) -> ModelList:
    """The experts, then the aliases of those that there are."""
    experts = {
        each.name: each for each in await caller.services.experts.page(caller.tenant_id, after=None, limit=_MOST)
    }
    aliases = caller.services.settings.openai_model_aliases
    listed = [_view(each.name, each) for each in experts.values()]
    listed += [_view(name, experts[expert]) for name, expert in aliases.items() if expert in experts]
    if not caller.services.embedder.by_words_alone and EMBEDDING not in experts:
        listed.append(_EMBEDDING_VIEW)
    return ModelList(data=listed)


@router.get("/{model}", response_model=ModelView)
async def model(model: str, caller: Chatter) -> ModelView:
    """One model, by its own name or an alias."""
    if model == EMBEDDING and not caller.services.embedder.by_words_alone:
        return _EMBEDDING_VIEW
    return _view(model, await expert_of(caller.services, caller.tenant_id, model))


async def expert_of(services: Services, tenant_id: UUID, model: str) -> Expert:
    """The expert behind a model's name.

    Raises:
        ModelNotFound: there is none.
    """
    try:
        return await services.experts.get(tenant_id, expert_name(services, model))
    except NotFound:
        raise ModelNotFound(f"There is no model {model!r}; GET /v1/models lists them.") from None


def expert_name(services: Services, model: str) -> str:
    """The name of the expert that a model's name stands for.

    Raises:
        ModelNotFound: no expert can have this name.
    """
    name = services.settings.openai_model_aliases.get(model, model)
    if not is_id(name):
        raise ModelNotFound(f"There is no model {model[:80]!r}; GET /v1/models lists them.")
    return name


def _view(name: str, expert: Expert) -> ModelView:
    return ModelView(id=name, created=int(expert.created_at.timestamp()), name=name)
