"""What is known of users: statements with their sources, newest first."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Response
from pydantic import Field

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.chat_schemas import MemoryChangeView
from api.json_router import PathId, json_router
from api.moments import Validity, validity_fields
from api.paging import After, Limit, cursor_of, next_of
from api.schemas import Page, StrictModel
from services.bootstrap import Services
from services.conversations.values import SpaceName
from services.errors import NotFound
from services.identity.caller import Caller
from services.memory.known import Statement
from services.memory.model import ChangeRequest, Memory
from services.memory.operations import Trigger
from services.memory.planner import LONGEST_ITEM

router = json_router("/api/v1/users/{user_id}/memories", "memory", HTTPStatus.NOT_FOUND)


@dataclass(frozen=True, kw_only=True)
class StatementView(Statement, Validity):
    """A statement about the user and their world, with the days on which it holds."""


@router.get("", response_model=Page[StatementView])
async def memories(
    user_id: PathId,
    services: ServicesOf,
    caller: MemoryReader,
    after: After = None,
    limit: Limit = 50,
) -> Any:
    """List what is known of a user: values of core memory and written memories.

    What was said is not listed here; `episodes` and their search have it.
    """
    found = await services.memory.known.list(caller.tenant_id, user_id, after=cursor_of(after, str), limit=limit)
    items = [{**vars(each), **validity_fields(each.text, each.since)} for each in found]
    return {"items": items, "next": next_of(found, limit, "since")}


class Whose(StrictModel):
    """Whose memory of the user is meant."""

    expert: str = "default"
    space: SpaceName | None = None


class CorrectionRequest(Whose):
    """What holds in place of a memory."""

    text: str = Field(min_length=1, max_length=LONGEST_ITEM)


class PinRequest(Whose):
    """Whether nothing in the background takes a memory away."""

    pinned: bool = True


@router.post("/{memory_id}/correct", response_model=MemoryChangeView)
async def correct(
    user_id: PathId,
    memory_id: Annotated[str, Path(max_length=36)],
    body: CorrectionRequest,
    services: ServicesOf,
    caller: MemoryWriter,
) -> Any:
    """Replace a memory by a text; what it was made from says it no more, and it can be undone."""
    request, memory = await _named(services, caller, user_id, memory_id, body)
    return await services.memory.changes.correct(request, memory.id, body.text, field=memory.field)


@router.post("/{memory_id}/pin", status_code=HTTPStatus.NO_CONTENT)
async def pin(
    user_id: PathId,
    memory_id: Annotated[str, Path(max_length=36)],
    body: PinRequest,
    services: ServicesOf,
    caller: MemoryWriter,
) -> Response:
    """Pin a memory, so that nothing in the background takes it away, or unpin it."""
    request, memory = await _named(services, caller, user_id, memory_id, body)
    pins = services.memory.pins
    if memory.kind == "value":
        await pins.set_on_value(request.owner, memory.section, memory.field, memory.text, pinned=body.pinned)
    else:
        await pins.set_on_episode(caller.tenant_id, user_id, UUID(memory.id), pinned=body.pinned)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _named(
    services: Services, caller: Caller, user_id: str, memory_id: str, whose: Whose
) -> tuple[ChangeRequest, Memory]:
    """Return for whom a memory is changed, and the memory."""
    owner = await services.memory.core.owner(caller.tenant_id, user_id, whose.expert, whose.space)
    request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
    memory = await services.memory.changes.finder.by_id(request.owner, memory_id)
    if memory is None or memory.kind == "said":
        raise NotFound(f"There is no memory {memory_id}.")
    return request, memory
