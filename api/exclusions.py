"""Memories and messages that a conversation must not use."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from pydantic import Field

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.json_router import NO_CONTENT, json_router
from api.schemas import Page, StrictModel, answered
from services.memory.removal.exclusions import Exclusion

router = json_router("/api/v1/conversations/{conversation_id}/exclusions", "conversations", HTTPStatus.NOT_FOUND)


class ExclusionRequest(StrictModel):
    """A memory or a message to exclude."""

    what: UUID = Field(description="Id of a memory (`memory_id` or `episode_id` elsewhere), or of a message.")


@router.get("", response_model=Page[Exclusion])
async def exclusions(conversation_id: UUID, services: ServicesOf, caller: MemoryReader) -> Any:
    """What a conversation never uses."""
    found = await services.memory.exclusions.of_conversation(
        caller.tenant_id, conversation_id, user=caller.user_id
    )
    return {"items": found}


@router.post("", response_model=answered(Exclusion), status_code=HTTPStatus.CREATED)
async def exclude(
    conversation_id: UUID, body: ExclusionRequest, services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Never use a memory, or a message, in a conversation, from its next turn on.

    Excluding a memory also excludes the messages it was made from, and other memories made from those. Memory
    itself is not changed, and other conversations still use it. A repeated request changes nothing.
    """
    return await services.memory.exclusions.add(caller.tenant_id, conversation_id, body.what, user=caller.user_id)


@router.delete("/{exclusion_id}", **NO_CONTENT)
async def use_again(conversation_id: UUID, exclusion_id: UUID, services: ServicesOf, caller: MemoryWriter) -> None:
    """Use it again, from the conversation's next turn on."""
    await services.memory.exclusions.remove(caller.tenant_id, conversation_id, exclusion_id, user=caller.user_id)
