"""API keys of the tenant: create, list and revoke them. A key is shown only when it is created."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field, StringConstraints

from api.access import Admin, ServicesOf
from api.json_router import json_router
from api.problems import documented
from api.schemas import Page, StrictModel, answered
from services.conversations.values import Id
from services.identity.api_keys import ApiKey
from services.identity.caller import Scope

router = json_router("/api/v1/keys", "keys")


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


@router.get("", response_model=Page[ApiKey])
async def keys(services: ServicesOf, caller: Admin) -> Any:
    """Every key of the tenant, including revoked ones."""
    return {"items": await services.api_keys.list(caller.tenant_id)}


@router.post("", response_model=answered(NewKeyView), status_code=HTTPStatus.CREATED)
async def create(body: KeyRequest, services: ServicesOf, caller: Admin) -> Any:
    """Create a key. Keys are checked while `ANAMNESIS_AUTH=api_key`."""
    record, key = await services.api_keys.create(caller.tenant_id, **body.model_dump())
    return {**vars(record), "key": key}


@router.delete("/{key_id}", response_model=answered(ApiKey), responses=documented(HTTPStatus.NOT_FOUND))
async def revoke(key_id: UUID, services: ServicesOf, caller: Admin) -> Any:
    """Revoke a key; repeating it changes nothing."""
    return await services.api_keys.revoke(caller.tenant_id, key_id)
