"""Forgetting what a text describes, and erasures of what is named, after a preview and with a signed receipt."""

import datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.chat_schemas import MemoryChangeView
from api.moments import Moment
from api.paging import After, Limit, PathId, cursor_of, json_router, page_by_time
from api.schemas import Page, StrictModel, answered
from services.conversations.values import Id, SpaceName, Text
from services.errors import InvalidInput
from services.memory.content import SECTION_PATTERN
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.removal.erasures import ForgetResult
from services.memory.removal.receipts import SignedReceipt
from services.memory.removal.targets import Target, ValueTarget

router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)


class ForgetRequest(StrictModel):
    """What to forget."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"what": "that I have diabetes"}]})

    what: Text = Field(description="Its description, in the user's words.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    dry_run: bool = Field(False, description="Change nothing, and say what would be removed.")
    space: SpaceName | None = Field(None, description="Forget it in this space as well.")


class AffectedView(BaseModel):
    """How much a forgetting removes."""

    messages: int = Field(description="That memory keeps nothing of any more; they stay in their conversation.")
    memories: int = Field(description="That were written down.")
    core_memory_items: int


class ForgottenView(MemoryChangeView):
    """What was forgotten, or would be."""

    affected: AffectedView | None = Field(description="Only with `dry_run`; `operation_id` is null then.")


@router.post("/memory/forget", response_model=ForgottenView)
async def forget(user_id: PathId, body: ForgetRequest, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Remove what a text describes, or an episode's id names, from core memory and recall.

    Messages stay in their conversation.
    """
    owner = await services.memory.core.owner(caller.tenant_id, user_id, body.expert, body.space)
    request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
    if not body.dry_run:
        return {**await services.memory.changes.forget(request, body.what), "affected": None}
    planned = await services.memory.changes.planner.plan_named(request, body.what)
    affected = AffectedView(
        messages=len(planned["messages"]),
        memories=len(planned["episodes"]),
        core_memory_items=len(planned["items"]),
    )
    return {**planned["change"], "operation_id": None, "affected": affected}


class ValueRequest(StrictModel):
    """A single value of core memory."""

    section: str = Field(pattern=SECTION_PATTERN)
    field: str = Field(min_length=1, max_length=200, description="Of what is nested, the names joined by dots.")
    text: str = Field(min_length=1, max_length=4096)


class ErasureRequest(StrictModel):
    """What to forget: one of `message_id`, `episode_id`, `value`, `conversation_id`, `day`, `since`, `topic`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"topic": "my asthma", "preview": True}]})

    message_id: UUID | None = Field(None, description="With a message of the user its answer goes, too.")
    episode_id: UUID | None = None
    value: ValueRequest | None = None
    conversation_id: UUID | None = None
    day: datetime.date | None = Field(None, description="In the user's time zone.")
    since: Moment | None = Field(None, description="Everything said from then on, and before `until`.")
    until: Moment | None = None
    topic: Text | None = Field(None, description="A description in the user's words.")
    expert: Id | None = Field(None, description="Only this expert's; of a value `default` unless given.")
    space: SpaceName | None = Field(None, description="Of a value: its space.")
    delete_messages: bool = Field(False, description="Delete the words from the conversations as well.")
    preview: bool = Field(False, description="Change nothing, and say what would happen.")

    @model_validator(mode="after")
    def _names_one_thing(self) -> "ErasureRequest":
        try:
            _ = self.target.kind
        except InvalidInput as error:
            raise ValueError(f"{error.field} {error.message}") from None
        return self

    @property
    def target(self) -> Target:
        """What it names."""
        names = self.model_dump(exclude={"value", "delete_messages", "preview"})
        return Target(**names, value=ValueTarget(**self.value.model_dump()) if self.value else None)


@router.post("/forget", response_model=answered(ForgetResult), include_in_schema=False)
@router.post("/erasures", response_model=answered(ForgetResult))
async def erase(user_id: PathId, body: ErasureRequest, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Delete something and all that was made of it; what else was made of it is made again without it.

    Unlike `memory/forget`, which hides, it cannot be undone, and a signed receipt attests it.
    """
    if body.preview:
        caller.require("memory:read")  # it shows what is stored
    return await services.forgetting.forget(
        caller.tenant_id,
        user_id,
        body.target,
        by=f"user {caller.user_id}" if caller.user_id else "operator",
        delete_messages=body.delete_messages,
        preview=body.preview,
    )


@router.get("/receipts", response_model=Page[SignedReceipt], include_in_schema=False)
@router.get("/erasures", response_model=Page[SignedReceipt])
async def receipts(
    user_id: PathId, services: ServicesOf, caller: MemoryReader, after: After = None, limit: Limit = 50
) -> Any:
    """Receipts of erasures, newest first; `anamnesis verify-receipt` checks one."""
    items = await services.forgetting.receipts.list(caller.tenant_id, user_id, after=cursor_of(after), limit=limit)
    return page_by_time(items, limit)
