"""Knowledge bases and their documents, which admins manage, and documents of one conversation."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Body, Path, Query, Request, Response
from pydantic import AfterValidator, Field

from api.access import Admin, Chatter, PathId
from api.paging import NO_CONTENT, Limit, json_router
from api.problems import CONFLICT, NOT_FOUND, documented
from api.request_bodies import whole_body
from api.schemas import Answer, Page, StrictModel, answered
from services.conversations.values import Text
from services.knowledge.bases import Base, BaseChange, NewBase, Prefix
from services.knowledge.document import Ingested, StoredDocument
from services.knowledge.documents import MAX_SOURCE_CHARACTERS
from services.knowledge.encodings import MEDIA_TYPES
from services.validation import no_nul
from state.prompt import Passage
from state.turn import AgentType

router = json_router("/api/v1/knowledge-bases", "knowledge bases")

OfBase = Annotated[Prefix, Path()]
Source = Annotated[
    str,
    Query(min_length=1, max_length=MAX_SOURCE_CHARACTERS, description="The document's name in the base."),
    AfterValidator(no_nul),
]
_OF_DOCUMENT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The bytes of the document; with `application/octet-stream` the ending of `source` says "
        "what it is.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in (*MEDIA_TYPES.values(), "application/octet-stream")
        },
    }
}


MAX_FOUND = 50


class KnowledgeQuery(StrictModel):
    """A question to a knowledge base."""

    query: Text
    top_k: int = Field(5, ge=1, le=MAX_FOUND)
    agent_type: AgentType = Field(
        "hybrid_agent", description="`hybrid_agent` searches by words and meaning, `naive_rag_agent` by meaning."
    )


class PassageList(Answer):
    """Passages relevant to a question, best first."""

    items: list[Passage]
    degraded: list[str] = Field(description="What did not answer: `milvus`, `embedding`.")


@router.get("", response_model=Page[Base])
async def bases(
    caller: Chatter,
    after: Annotated[Prefix | None, Query(description="The `next` of the page before.")] = None,
    limit: Limit = 50,
) -> Any:
    """Knowledge bases of the tenant, by prefix."""
    items = await caller.services.knowledge.bases.page(caller.tenant_id, after=after, limit=limit)
    return {"items": items, "next": items[-1].prefix if len(items) == limit else None}


@router.post("", response_model=answered(Base), status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def create(new: NewBase, caller: Admin) -> Any:
    """Create a knowledge base; 409 if the prefix is taken."""
    return await caller.services.knowledge.bases.create(caller.tenant_id, new)


@router.get("/{prefix}", response_model=answered(Base), responses=NOT_FOUND)
async def get(prefix: OfBase, caller: Chatter) -> Any:
    """One knowledge base."""
    return await caller.services.knowledge.bases.get(caller.tenant_id, prefix)


@router.patch("/{prefix}", response_model=answered(Base), responses=NOT_FOUND)
async def change(prefix: OfBase, changed: Annotated[BaseChange, Body()], caller: Admin) -> Any:
    """Change the given fields of a knowledge base, for messages sent afterwards."""
    return await caller.services.knowledge.bases.update(caller.tenant_id, prefix, changed)


@router.delete("/{prefix}", **NO_CONTENT, responses=NOT_FOUND)
async def delete(prefix: OfBase, caller: Admin) -> None:
    """Remove a knowledge base with its documents."""
    await caller.services.knowledge.bases.delete(caller.tenant_id, prefix)


@router.get("/{prefix}/documents", response_model=Page[StoredDocument], responses=NOT_FOUND)
async def documents(
    prefix: OfBase,
    caller: Chatter,
    after: Annotated[
        Annotated[str, AfterValidator(no_nul)] | None,
        Query(max_length=MAX_SOURCE_CHARACTERS, description="The `next` of the page before."),
    ] = None,
    limit: Limit = 50,
) -> Any:
    """Documents of a knowledge base, by source."""
    known = caller.services.knowledge.documents
    base_id = await known.base_id(caller.tenant_id, prefix)
    items = await known.page(caller.tenant_id, base_id, after=after, limit=limit)
    return {"items": items, "next": items[-1].source if len(items) == limit else None}


@router.post(
    "/{prefix}/documents",
    response_model=answered(Ingested),
    status_code=HTTPStatus.CREATED,
    responses=NOT_FOUND
    | documented(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    | {200: {"model": Ingested, "description": "It is there already, with the same bytes."}},
    openapi_extra=_OF_DOCUMENT,
)
async def ingest(prefix: OfBase, source: Source, request: Request, response: Response, caller: Admin) -> Any:
    """Add a document, replacing one with the same `source`; it is found by words at once, and indexed later."""
    known = caller.services.knowledge.documents
    base_id = await known.base_id(caller.tenant_id, prefix)
    data = await whole_body(request, caller.services.knowledge.documents.most_bytes, "document")
    kind = request.headers.get("content-type", "")
    taken = await known.ingest(caller.tenant_id, base_id, source, data, content_type=kind)
    if taken.status == "unchanged":
        response.status_code = HTTPStatus.OK
    return taken


@router.delete("/{prefix}/documents/{document_id}", **NO_CONTENT, responses=NOT_FOUND)
async def delete_document(prefix: OfBase, document_id: UUID, caller: Admin) -> None:
    """Remove a document."""
    known = caller.services.knowledge.documents
    base_id = await known.base_id(caller.tenant_id, prefix)
    await known.delete(caller.tenant_id, base_id, document_id)


@router.post("/{prefix}/search", response_model=PassageList, responses=NOT_FOUND)
async def search(prefix: OfBase, asked: KnowledgeQuery, caller: Chatter) -> Any:
    """The passages that an answer to this question would get."""
    await caller.services.knowledge.documents.base_id(caller.tenant_id, prefix)
    found = await caller.services.knowledge.search.search(
        caller.tenant_id, prefix, asked.query, agent_type=asked.agent_type, limit=asked.top_k
    )
    return {"items": found.passages, "degraded": found.degraded}


conversation_documents = json_router("/api/v1/users/{user_id}/sessions/{session_id}/documents", "conversations")


@conversation_documents.get("", response_model=Page[StoredDocument])
async def documents_of_conversation(user_id: PathId, session_id: PathId, caller: Chatter) -> Any:
    """Documents of a conversation."""
    return {"items": await caller.services.knowledge.of_conversations.list(caller.tenant_id, user_id, session_id)}


@conversation_documents.post(
    "",
    response_model=answered(Ingested),
    status_code=HTTPStatus.CREATED,
    responses=documented(
        HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    ),
    openapi_extra=_OF_DOCUMENT,
)
async def add_to_conversation(
    user_id: PathId, session_id: PathId, source: Source, request: Request, caller: Chatter
) -> Any:
    """Add a document to a conversation, also before its first message; only answers of the conversation use it."""
    data = await whole_body(request, caller.services.knowledge.documents.most_bytes, "document")
    await caller.services.users.make(caller.tenant_id, user_id)
    kind = request.headers.get("content-type", "")
    return await caller.services.knowledge.of_conversations.add(
        caller.tenant_id, user_id, session_id, source, data, content_type=kind
    )


@conversation_documents.delete("/{document_id}", **NO_CONTENT, responses=NOT_FOUND)
async def remove_from_conversation(
    user_id: PathId, session_id: PathId, document_id: UUID, caller: Chatter
) -> None:
    """Remove a document of a conversation."""
    await caller.services.knowledge.of_conversations.remove(caller.tenant_id, user_id, session_id, document_id)
