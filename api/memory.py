"""Core memory of users: read and change it; the log of memory operations; questions about the user."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from api.access import ExpertQuery, ReadUser, ServicesOf, SpaceQuery, WrittenUser
from api.paging import NO_CONTENT, Limit, Paged, json_router
from api.problems import CONFLICT
from api.schemas import Answer, AsOf, Page, StrictModel, Validity, answered, validity_fields
from services.bootstrap import Services
from services.memory.core.blocks import Block, Change, Owner
from services.memory.core.content import MAX_SECTION_BYTES, SECTION_PATTERN
from services.memory.core.items import values_of
from services.memory.core.pins import PinnedValue
from services.memory.operations import LoggedOperation
from services.memory.proposals.listing import Proposal
from services.memory.proposals.questions import State
from services.memory.removal.undo import UndoneOperation
from state.memory import MemoryChange

_LARGEST_VERSION = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class TimedValueView(PinnedValue, Validity):
    """A value of core memory that says when it holds."""


class CoreMemorySectionView(Answer):
    """A section of core memory."""

    section: str
    content: dict[str, Any]
    version: int = Field(description="From 1; one more with every change.")
    updated_at: datetime
    validity: list[TimedValueView] = Field(description="Values that say when they hold.")
    pinned: list[PinnedValue] = Field(description="Values that only the user takes away.")


class CoreMemoryRequest(BaseModel):
    """The new content of a section."""

    content: dict[str, Any] = Field(description=f"Its whole content, at most {MAX_SECTION_BYTES} bytes of JSON.")
    expected_version: int | None = Field(
        None,
        ge=0,
        le=_LARGEST_VERSION,
        description="Replace it only at this version; 0 = only if there is no such section.",
    )


class RollbackRequest(BaseModel):
    """The version of a section to restore."""

    version: int = Field(ge=1, le=_LARGEST_VERSION)


class SettlementRequest(StrictModel):
    """The user's decision on a proposal."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"accept": True}]})

    accept: bool


class SettledView(Answer):
    """A proposal that was settled."""

    accepted: bool
    change: MemoryChange | None = Field(description="Of one that was accepted and is not about two memories.")


router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)

Section = Annotated[str, Path(pattern=SECTION_PATTERN, description="1 to 64 letters, digits and underscores.")]


async def _to_read(user: ReadUser, expert: ExpertQuery = "default", space: SpaceQuery = None) -> Owner:
    return await user.owner(expert, space)


async def _to_write(user: WrittenUser, expert: ExpertQuery = "default", space: SpaceQuery = None) -> Owner:
    return await user.owner(expert, space)


ReadOwner = Annotated[Owner, Depends(_to_read)]
WrittenOwner = Annotated[Owner, Depends(_to_write)]


@router.get("/core-memory", response_model=Page[CoreMemorySectionView])
async def core_memory(owner: ReadOwner, services: ServicesOf, as_of: AsOf = None) -> Any:
    """Every section that an expert has about the user, by name; with `space`, only those of that space.

    In a space, prompts show its sections overlaid on the shared ones.
    """
    blocks = await services.memory.core.read(owner, as_of)
    return {"items": await _views(services, owner, blocks), "next": None}


@router.put("/core-memory/{section}", response_model=CoreMemorySectionView, responses=CONFLICT)
async def replace(
    user: WrittenUser,
    section: Section,
    body: CoreMemoryRequest,
    expert: ExpertQuery = "default",
    space: SpaceQuery = None,
) -> Any:
    """Replace the whole content of a section; 409 if its version is not the expected one."""
    owner = await user.owner(expert, space, make_space=True)
    block = await user.services.memory.core.replace(
        owner, section, body.content, user.trigger, expected_version=body.expected_version
    )
    return (await _views(user.services, owner, [block]))[0]


@router.delete("/core-memory/{section}", **NO_CONTENT)
async def forget(user: WrittenUser, owner: WrittenOwner, section: Section) -> None:
    """Remove a section, with its history."""
    await user.services.memory.core.forget(owner, section, user.trigger)


@router.get("/core-memory/{section}/history", response_model=Page[Change])
async def history(
    owner: ReadOwner,
    section: Section,
    services: ServicesOf,
    after: Annotated[
        int | None, Query(ge=1, le=_LARGEST_VERSION, description="The `next` of the page before.")
    ] = None,
    limit: Limit = 50,
) -> Any:
    """Every change of a section, newest first."""
    items = await services.memory.core.history(owner, section, before=after, limit=limit)
    return {"items": items, "next": str(items[-1].version) if len(items) == limit else None}


@router.post("/core-memory/{section}/rollback", response_model=CoreMemorySectionView)
async def rollback(user: WrittenUser, owner: WrittenOwner, section: Section, body: RollbackRequest) -> Any:
    """Give a section the content of an earlier version, as a new version."""
    block = await user.services.memory.core.rollback(owner, section, body.version, user.trigger)
    return (await _views(user.services, owner, [block]))[0]


@router.get("/memory-operations", response_model=Page[LoggedOperation])
async def operations(user: ReadUser, page: Paged, space: SpaceQuery = None) -> Any:
    """Memory operations for the user, newest first; with `space`, those in that space and outside of any."""
    return page.of(await user.services.memory.operations.list(*user.named, space=space, **vars(page)), "at")


@router.post(
    "/memory-operations/{operation_id}/undo", response_model=answered(UndoneOperation), responses=CONFLICT
)
async def undo(user: WrittenUser, operation_id: UUID) -> Any:
    """Undo an operation; repeating it changes nothing. 409 if it cannot be undone, or no longer."""
    return await user.services.memory.undo.undo(*user.named, operation_id)


@router.get("/memory-proposals", response_model=Page[Proposal])
async def proposals(
    user: ReadUser,
    page: Paged,
    state: Annotated[State, Query(description="Those that wait, or were settled in this way.")] = "waiting",
) -> Any:
    """Changes of memory that wait for the user, or were settled, with their sources; newest first."""
    return page.of(await user.services.memory.proposals.list(*user.named, state=state, **vars(page)), "at")


@router.post("/memory-proposals/{proposal_id}", response_model=SettledView, responses=CONFLICT)
async def settle(user: WrittenUser, proposal_id: UUID, body: SettlementRequest) -> Any:
    """Accept or reject a proposal; 409 where it was settled before, or what it is about has changed."""
    change = await user.services.memory.proposals.settle(*user.named, proposal_id, accept=body.accept)
    return {"accepted": body.accept, "change": change}


async def _views(services: Services, owner: Owner, blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return sections with their values that say when they hold, and their pinned values."""
    pinned = await services.memory.pins.values(owner.tenant_id, blocks)
    return [{**_view(block), "pinned": pinned[block.section]} for block in blocks]


def _view(block: Block) -> dict[str, Any]:
    found = [
        {"field": field, "text": text, **validity_fields(text, block.updated_at)}
        for field, text in values_of(block.content)
    ]
    said = [each for each in found if each["valid_from"] or each["valid_to"] or each["is_over"]]
    return {**vars(block), "validity": said}
