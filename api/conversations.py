"""Conversations: read them with their messages, summaries and topics, remove them, and what one never uses."""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.access import MemoryReader, MemoryWriter
from api.long_json import MessageView, message_page
from api.paging import NO_CONTENT, Paged, json_router
from api.problems import CONFLICT
from api.schemas import Answer, ErasedConversationView, Page, StrictModel, answered
from services.conversations.branches import Branch
from services.conversations.transcript import LONGEST_TITLE, Conversation, Message
from services.conversations.turn import ListedTurn
from services.conversations.values import Id, SpaceName
from services.errors import InvalidInput
from services.memory.removal.exclusions import Exclusion
from services.summaries.store import StoredSummary
from services.summaries.topic_store import StoredTopic
from services.usage.ledger import Spender
from services.validation import no_nul

router = json_router("/api/v1", "conversations", HTTPStatus.NOT_FOUND)


Title = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TITLE), AfterValidator(no_nul)
]


class ConversationRequest(StrictModel):
    """A change of a conversation; fields that are not given stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Bread", "pinned": True}]})

    title: Title | None = Field(None, description=f"1 to {LONGEST_TITLE} characters.")
    pinned: bool | None = None


class PlaceView(BaseModel):
    """The position of a message in its conversation."""

    message_id: UUID
    created_at: datetime


class SummaryView(Answer):
    """A conversation's rolling summary; all null or 0 if there is none yet."""

    summary: str | None = None
    summary_version: int = Field(0, description="One more with every change.")
    covered_through: PlaceView | None = Field(None, description="The last message that the summary covers.")
    covered_message_count: int = 0
    increments_since_full: int = Field(0, description="Changes since it was made from the whole conversation.")
    updated_at: datetime | None = None


@router.get("/conversations", response_model=Page[Conversation])
async def conversations(
    caller: MemoryReader,
    page: Paged,
    user_id: Id | None = None,
    session_id: Id | None = None,
    space: Annotated[SpaceName | None, Query(description="Only those of spaces of this name.")] = None,
    pinned: Annotated[bool | None, Query(description="Only those that are pinned, or only the others.")] = None,
    contains: Annotated[
        str | None,
        Query(min_length=1, max_length=200, description="Text in the title or a message; needs a user_id."),
    ] = None,
) -> Any:
    """Conversations of the tenant, of one user, or of one session name, newest first."""
    if user_id is not None:
        caller.act_for(user_id)
    if contains is not None and (user_id or caller.user_id) is None:
        raise InvalidInput("contains", "is searched among the conversations of one user; give a user_id")
    items = await caller.services.transcript.conversations(
        caller.tenant_id,
        user_id=user_id or caller.user_id,
        session_id=session_id,
        space=space,
        pinned=pinned,
        contains=None if contains is None else contains.replace("\x00", ""),
        **vars(page),
    )
    return page.of(items)


@router.get("/conversations/{conversation_id}", response_model=answered(Conversation))
async def conversation(conversation_id: UUID, caller: MemoryReader) -> Any:
    """One conversation."""
    return await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)


@router.patch("/conversations/{conversation_id}", response_model=answered(Conversation))
async def change(conversation_id: UUID, body: ConversationRequest, caller: MemoryWriter) -> Any:
    """Rename a conversation, pin it or unpin it."""
    return await caller.services.transcript.change(
        caller.tenant_id, conversation_id, user_id=caller.user_id, title=body.title, pinned=body.pinned
    )


@router.post("/conversations/{conversation_id}/name", response_model=answered(Conversation))
async def name(conversation_id: UUID, caller: MemoryWriter) -> Any:
    """Have the small model name a conversation by its first exchange, unless somebody has named it."""
    spender = Spender(caller.tenant_id, "conversation_name", conversation_id=conversation_id)
    with caller.services.usage.meter.spending(spender):
        return await caller.services.conversation_names.name(
            caller.tenant_id, conversation_id, user_id=caller.user_id
        )


@router.delete("/conversations/{conversation_id}", response_model=ErasedConversationView)
async def erase(
    conversation_id: UUID,
    caller: MemoryWriter,
    keep_memories: Annotated[
        bool, Query(description="Keep core memory and written memories that come from the conversation.")
    ] = False,
) -> Any:
    """Remove a conversation with everything derived from it; a running turn is cancelled first."""
    erased = await caller.services.erasure.conversation(
        caller.tenant_id, conversation_id, user=caller.user_id, keep_memories=keep_memories
    )
    counts = erased.removed["postgresql"]
    return ErasedConversationView(
        conversation_id=conversation_id, keep_memories=keep_memories, removed=counts, pending=erased.pending
    )


@router.get("/conversations/{conversation_id}/messages", response_model=Page[MessageView])
async def messages(conversation_id: UUID, caller: MemoryReader, page: Paged) -> Any:
    """Messages of a conversation, oldest first, including answers that broke off."""
    parts = caller.services.transcript.page_in_parts(
        caller.tenant_id, conversation_id, user_id=caller.user_id, **vars(page)
    )
    first: Sequence[Message] = await anext(parts, [])  # what can be refused is refused before the answer begins
    return StreamingResponse(message_page(first, parts, page.limit), media_type="application/json")


@router.get("/conversations/{conversation_id}/branches", response_model=Page[Branch])
async def branches(conversation_id: UUID, caller: MemoryReader) -> Any:
    """Replaced tails of a conversation, in the order in which they were put aside."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    return {"items": await caller.services.branches.list(caller.tenant_id, conversation_id)}


@router.post(
    "/conversations/{conversation_id}/branches/{branch_id}/switch", response_model=Page[Branch], responses=CONFLICT
)
async def switch_branch(conversation_id: UUID, branch_id: UUID, caller: MemoryWriter) -> Any:
    """Restore a branch; the current tail becomes one. Returns the resulting branches."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    await caller.services.branches.switch(caller.tenant_id, conversation_id, branch_id)
    return {"items": await caller.services.branches.list(caller.tenant_id, conversation_id)}


@router.get("/conversations/{conversation_id}/turns", response_model=Page[ListedTurn])
async def turns(conversation_id: UUID, caller: MemoryReader, page: Paged) -> Any:
    """Turns of a conversation, oldest first, with their outcome and the user's feedback."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    return page.of(
        await caller.services.turns.page(caller.tenant_id, conversation_id, **vars(page)), "accepted_at"
    )


@router.get("/conversations/{conversation_id}/summary", response_model=SummaryView)
async def summary(conversation_id: UUID, caller: MemoryReader) -> Any:
    """A conversation's rolling summary, and which messages it covers."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    return _summary_view(await caller.services.summaries.store.get(caller.tenant_id, conversation_id))


@router.get("/conversations/{conversation_id}/topics", response_model=Page[StoredTopic])
async def topics(conversation_id: UUID, caller: MemoryReader, page: Paged) -> Any:
    """Archived topics of a conversation, oldest first."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    items = await caller.services.topics.store.topics(caller.tenant_id, conversation_id, **vars(page))
    return page.of(items, "last_message_at")


def _summary_view(stored: StoredSummary | None) -> dict[str, Any]:
    if stored is None:
        return {}
    at, message_id = stored.through
    return {**vars(stored), "covered_through": {"message_id": message_id, "created_at": at}}


class ExclusionRequest(StrictModel):
    """A memory or a message to exclude."""

    what: UUID = Field(description="Id of a memory (`memory_id` or `episode_id` elsewhere), or of a message.")


@router.get("/conversations/{conversation_id}/exclusions", response_model=Page[Exclusion])
async def exclusions(conversation_id: UUID, caller: MemoryReader) -> Any:
    """List what a conversation never uses."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    return {"items": await caller.services.memory.exclusions.of_conversation(caller.tenant_id, conversation_id)}


@router.post(
    "/conversations/{conversation_id}/exclusions",
    response_model=answered(Exclusion),
    status_code=HTTPStatus.CREATED,
)
async def exclude(conversation_id: UUID, body: ExclusionRequest, caller: MemoryWriter) -> Any:
    """Never use a memory, or a message, in a conversation, from its next turn on.

    Excluding a memory also excludes the messages it was made from, and other memories made from those. Memory
    itself is not changed, and other conversations still use it. A repeated request changes nothing.
    """
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    return await caller.services.memory.exclusions.add(caller.tenant_id, conversation_id, body.what)


@router.delete("/conversations/{conversation_id}/exclusions/{exclusion_id}", **NO_CONTENT)
async def use_again(conversation_id: UUID, exclusion_id: UUID, caller: MemoryWriter) -> None:
    """Use it again, from the conversation's next turn on."""
    await caller.services.transcript.conversation(caller.tenant_id, conversation_id, user_id=caller.user_id)
    await caller.services.memory.exclusions.remove(caller.tenant_id, conversation_id, exclusion_id)
