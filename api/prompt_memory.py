"""Endpoint for the memory that another agent shows in its own prompt."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field, StringConstraints

from api.access import ReadUser
from api.chat_schemas import EarlierMessageRequest, ExternalId
from api.paging import json_router
from api.schemas import StrictModel, answered
from graph.prompt_memory import PromptMemory, prompt_memory
from services.conversations import values
from services.conversations.turn import TurnRequest
from state.turn import EarlierMessage, TurnInput

_MOST_EARLIER, _MOST_SHOWN = 12, 5_000

router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)


class PromptMemoryRequest(StrictModel):
    """A message that another agent answers."""

    message: values.Text = Field(description=f"1 to {values.MAX_MESSAGE_CHARACTERS} characters.")
    session_id: values.Id | None = Field(
        None, description="The caller's name for the conversation, which may belong to a space. Null = of none."
    )
    in_prompt: list[ExternalId] = Field(
        default_factory=list,
        max_length=_MOST_SHOWN,
        description="The caller's ids (`external_id`) of messages that the prompt has anyway.",
    )
    earlier: list[EarlierMessageRequest] = Field(
        default_factory=list,
        max_length=_MOST_EARLIER,
        description="Preceding messages, oldest first, to which the message may refer.",
    )
    expert: values.Id | None = Field(
        None, description="Expert who remembers; of a conversation that has begun, its own."
    )
    space: values.SpaceName | None = Field(None, description="Space of a new conversation.")
    timezone: values.TimeZone | None = Field(
        None, description="IANA name or offset; null = the user's stored one."
    )
    version: str = Field("", max_length=100, description="Of the answer before, in this conversation.")
    shown: list[Annotated[str, StringConstraints(max_length=64)]] = Field(
        default_factory=list, max_length=_MOST_SHOWN, description="Of the answer before, in this conversation."
    )


@router.post("/memory/prompt", response_model=answered(PromptMemory))
async def memory_of_prompt(user: ReadUser, body: PromptMemoryRequest) -> Any:
    """Return what memory has for a message, in the words of the service's own prompts; nothing is stored.

    It is core memory, what bears on the message, days that it asks about, and what it orders to change. What
    earlier prompts of the conversation have shown is left out as long as `version` stays; under a new one take
    the earlier texts out of the prompt. Of a user who is not known there is nothing.
    """
    asked = TurnInput(
        user_id=user.user_id,
        session_id=body.session_id or str(uuid4()),
        message=body.message,
        expert=body.expert,
        space=body.space,
        timezone=body.timezone,
        earlier=[
            EarlierMessage(role=each.role, content=each.content, speaker=each.speaker or "")
            for each in body.earlier
        ],
    )
    request = TurnRequest(user.caller.tenant_id, asked, stored=False)
    return await prompt_memory(
        user.services, request, version=body.version, shown=body.shown, in_prompt=body.in_prompt
    )
