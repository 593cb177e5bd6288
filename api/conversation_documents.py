"""Documents of one conversation, which its user adds and removes."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from fastapi import Request

from api.access import Chatter, ServicesOf
from api.json_router import NO_CONTENT, PathId, json_router
from api.knowledge import OF_DOCUMENT, Source, body_of, readable
from api.problems import documented
from api.schemas import Page, answered
from services.knowledge.document import Ingested, StoredDocument

router = json_router("/api/v1/users/{user_id}/sessions/{session_id}/documents", "conversations")


@router.get("", response_model=Page[StoredDocument])
async def documents(user_id: PathId, session_id: PathId, services: ServicesOf, caller: Chatter) -> Any:
    """Documents of a conversation."""
    return {"items": await services.knowledge.of_conversations.list(caller.tenant_id, user_id, session_id)}


@router.post(
    "",
    response_model=answered(Ingested),
    status_code=HTTPStatus.CREATED,
    responses=documented(
        HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    ),
    openapi_extra=OF_DOCUMENT,
)
async def add(
    user_id: PathId,
    session_id: PathId,
    source: Source,
    request: Request,
    services: ServicesOf,
    caller: Chatter,
) -> Any:
    """Add a document to a conversation, also before its first message; only answers of the conversation use it."""
    data = await body_of(request, services)
    await services.users.make(caller.tenant_id, user_id)
    with readable():
        return await services.knowledge.of_conversations.add(
            caller.tenant_id,
            user_id,
            session_id,
            source,
            data,
            content_type=request.headers.get("content-type", ""),
        )


@router.delete("/{document_id}", **NO_CONTENT, responses=documented(HTTPStatus.NOT_FOUND))
async def remove(
    user_id: PathId,
    session_id: PathId,
    document_id: UUID,
    services: ServicesOf,
    caller: Chatter,
) -> None:
    """Remove a document of a conversation."""
    await services.knowledge.of_conversations.remove(caller.tenant_id, user_id, session_id, document_id)
