"""Forgetting what a text describes, and erasures of what is named, after a preview and with a signed receipt."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from api.access import ReadUser, WrittenUser
from api.paging import Paged, json_router
from api.schemas import Page, StrictModel, answered
from services.conversations.values import Id, Moment, SpaceName, Text
from services.memory.model import ChangeRequest
from services.memory.removal.erasures import ForgetResult
from services.memory.removal.receipts import SignedReceipt
from services.memory.removal.targets import Target
from state.memory import MemoryChange

router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)


class ForgetRequest(StrictModel):
    """A request to forget a topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"what": "that I have diabetes"}]})

    what: Text = Field(description="Its description, in the user's words.")
    all: bool = Field(
        False, description="Whether what shares a sentence with it may go too, and all candidates with the words."
    )
    keep: Text | None = Field(
        None,
        description="What is to stay of the sentence that also says something else, in words that stand there.",
    )
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    dry_run: bool = Field(False, description="Change nothing, and say what would be removed.")
    space: SpaceName | None = Field(None, description="Forget it in this space as well.")


class Affected(TypedDict):
    """How much a forgetting removes."""

    messages: int
    """Messages that memory keeps nothing of any more; they stay in their conversation."""
    memories: int
    """Memories that were written down."""
    core_memory_items: int


class Forgotten(MemoryChange):
    """Record of what was forgotten, or would be."""

    affected: Affected | None
    """Only with `dry_run`; `operation_id` is null then."""


@router.post("/memory/forget", response_model=answered(Forgotten))
async def forget(user: WrittenUser, body: ForgetRequest) -> Any:
    """Remove what a text describes, or an episode's id names, from core memory and recall.

    Messages stay in their conversation. Where what is named stands in one sentence with something else, nothing is
    changed: `also_said` has the sentences, for `keep` or `all` in a second call.
    """
    changes = user.services.memory.changes
    request = ChangeRequest.outside_of_turns(await user.owner(body.expert, body.space), user.trigger)
    if not body.dry_run:
        change = await changes.forget(request, body.what, takes_all=body.all, keep=body.keep or "")
        return {**change, "affected": None}
    user.caller.require("memory:read")  # it shows what is stored
    planned = await changes.planner.plan_named(request, body.what, takes_all=body.all, keep=body.keep or "")
    affected = Affected(
        messages=len(planned.messages), memories=len(planned.episodes), core_memory_items=len(planned.items)
    )
    return {**planned.change, "operation_id": None, "affected": affected}


@dataclass(frozen=True, kw_only=True)
class ErasureRequest(Target):
    """Request to forget one of `message_id`, `episode_id`, `value`, `conversation_id`, `day`, `since`, `topic`."""

    __pydantic_config__ = ConfigDict(
        extra="forbid",
        use_attribute_docstrings=True,
        json_schema_extra={"examples": [{"topic": "my asthma", "preview": True}]},
    )

    message_id: UUID | None = None
    """With a message of the user its answer goes, too."""
    since: Moment | None = None
    """Everything said from then on, and before `until`."""
    until: Moment | None = None
    topic: Text | None = None
    """A description in the user's words."""
    expert: Id | None = None
    """Only this expert's; of a value `default` unless given."""
    space: SpaceName | None = None
    """Space of a value."""
    delete_messages: bool = False
    """Delete the words from the conversations as well."""
    preview: bool = False
    """Change nothing, and say what would happen."""


@router.post("/forget", response_model=answered(ForgetResult), include_in_schema=False)
@router.post("/erasures", response_model=answered(ForgetResult))
async def erase(user: WrittenUser, body: ErasureRequest) -> Any:
    """Delete something and all that was made of it; what else was made of it is made again without it.

    Unlike `memory/forget`, which hides, it cannot be undone, and a signed receipt attests it.
    """
    if body.preview:
        user.caller.require("memory:read")  # it shows what is stored
    return await user.services.forgetting.forget(
        *user.named, body, by=user.caller.actor, delete_messages=body.delete_messages, preview=body.preview
    )


@router.get("/receipts", response_model=Page[SignedReceipt], include_in_schema=False)
@router.get("/erasures", response_model=Page[SignedReceipt])
async def receipts(user: ReadUser, page: Paged) -> Any:
    """Receipts of erasures, newest first; `anamnesis verify-receipt` checks one."""
    return page.of(await user.services.forgetting.receipts.list(*user.named, **vars(page)))
