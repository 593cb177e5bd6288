"""Endpoints for the memories of users: statements with their sources and origins, and the user in brief."""

from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from api.access import ExpertQuery, ReadUser, SpaceQuery, UserOfPath, WrittenUser
from api.paging import NO_CONTENT, After, Limit, cursor_of, json_router, next_of
from api.schemas import Page, StrictModel, Validity, answered, validity_fields
from services.context.sources.core_memory import CONCERNS, NAMES, STYLES, first_of, last_talk, memory_text
from services.context.sources.time import user_activity
from services.conversations.values import SpaceName
from services.errors import InvalidInput, NotFound
from services.memory.finding.known import Statement
from services.memory.lineage.tracing import Direction, Trace
from services.memory.model import ChangeRequest, Memory
from services.memory.planning.planner import LONGEST_ITEM, LONGEST_WRITTEN
from services.text.language import language_of
from state.memory import MemoryChange

router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)


@dataclass(frozen=True, kw_only=True)
class StatementView(Statement, Validity):
    """A statement about the user and their world, with the days on which it holds."""


@router.get("/memories", response_model=Page[StatementView])
async def memories(user: ReadUser, after: After = None, limit: Limit = 50) -> Any:
    """List what is known of a user: values of core memory and written memories.

    What was said is not listed here; `episodes` and their search have it.
    """
    found = await user.services.memory.known.list(*user.named, after=cursor_of(after, str), limit=limit)
    items = [{**vars(each), **validity_fields(each.text, each.since)} for each in found]
    return {"items": items, "next": next_of(found, limit, "since")}


class Whose(StrictModel):
    """The user, and the space, whose memory is meant."""

    expert: str = "default"
    space: SpaceName | None = None


class CorrectionRequest(Whose):
    """A statement that takes the place of a memory."""

    text: str = Field(min_length=1, max_length=LONGEST_ITEM)


class PinRequest(Whose):
    """Whether nothing in the background takes a memory away."""

    pinned: bool = True


class RememberRequest(Whose):
    """A statement about the user."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "I am allergic to penicillin."}]})

    text: str = Field(min_length=1, max_length=LONGEST_WRITTEN)
    replaces: str = Field("", max_length=1_000, description="The id or words of what it holds in place of.")


@router.post("/memory/remember", response_model=MemoryChange)
async def remember(user: WrittenUser, body: RememberRequest) -> Any:
    """Keep a statement; a user who is not there yet is made.

    Without `operation_id` in the answer nothing was changed: `summary` says why.
    """
    text = body.text.replace("\x00", "").strip()
    if not text:
        raise InvalidInput("text", "is empty")
    await user.services.users.make(*user.named)
    owner = await user.owner(body.expert, body.space, make_space=body.space is not None)
    request = ChangeRequest.outside_of_turns(owner, user.trigger)
    return await user.services.memory.changes.remember(request, text, replaces=body.replaces.strip())


@router.post("/memories/{memory_id}/correct", response_model=MemoryChange)
async def correct(
    user: WrittenUser, memory_id: Annotated[str, Path(max_length=36)], body: CorrectionRequest
) -> Any:
    """Replace a memory by a text; what was said stays as it is, and it can be undone."""
    request, memory = await _named(user, memory_id, body)
    return await user.services.memory.changes.correct(request, memory.id, body.text, field=memory.field)


@router.post("/memories/{memory_id}/pin", **NO_CONTENT)
async def pin(user: WrittenUser, memory_id: Annotated[str, Path(max_length=36)], body: PinRequest) -> None:
    """Pin a memory, so that nothing in the background takes it away, or unpin it."""
    request, memory = await _named(user, memory_id, body)
    pins = user.services.memory.pins
    if memory.kind == "value":
        await pins.set_on_value(request.owner, memory.section, memory.field, memory.text, pinned=body.pinned)
    else:
        await pins.set_on_episode(*user.named, UUID(memory.id), pinned=body.pinned)


async def _named(user: UserOfPath, memory_id: str, whose: Whose) -> tuple[ChangeRequest, Memory]:
    """Return the request to change a memory, and the memory."""
    request = ChangeRequest.outside_of_turns(await user.owner(whose.expert, whose.space), user.trigger)
    memory = await user.services.memory.changes.finder.by_id(request.owner, memory_id)
    if memory is None or memory.kind == "said":
        raise NotFound(f"There is no memory {memory_id}.")
    return request, memory


@dataclass(frozen=True, kw_only=True)
class LineageView(Trace):
    """Everything above or below something."""

    direction: Direction


@router.get("/lineage", response_model=answered(LineageView))
async def lineage(
    user: ReadUser,
    of: Annotated[
        str,
        Query(
            max_length=200,
            description="`kind:id`; a section of core memory also by its name, a day by its date.",
            examples=["episode:0190a000-0000-7000-8000-000000000001", "core_memory:human", "day:2026-05-01"],
        ),
    ],
    direction: Direction = "up",
    expert: ExpertQuery = "default",
    space: SpaceQuery = None,
) -> Any:
    """Trace something `up` to the messages it was made from, or `down` to everything that was made of it."""
    found, node = await user.services.lineage.find(*user.named, of, expert=expert, space=space)
    trace = await user.services.lineage.of_node(user.caller.tenant_id, found, node, direction)
    return {**vars(trace), "direction": direction}


persona_router = json_router("/api/v1/users/{user_id}", "persona", HTTPStatus.NOT_FOUND)


class PersonaView(BaseModel):
    """A user in brief; null = not known."""

    expert: str
    name: str | None
    style: str | None
    concerns: str | None
    visit_count: int = Field(description="Up to 1000.")
    last_visit: datetime | None
    last_topic: str | None
    card: str = Field(description="As a prompt's beginning shows it from the next epoch on; empty = nothing.")


@persona_router.get("/persona", response_model=PersonaView)
async def persona(user: ReadUser, expert: ExpertQuery = "default", space: SpaceQuery = None) -> Any:
    """A user in brief, from core memory and their visits."""
    services, owner = user.services, await user.owner(expert, space)
    content = await services.memory.core.known(owner)
    known = await user_activity(services.database, owner, datetime.now(UTC))
    timezone = (await services.users.get(*user.named)).timezone
    human, self_image = content.get("human", {}), content.get("persona", {})
    language = language_of(str(value) for fields in content.values() for value in fields.values())
    card = last_talk(known, datetime.now(UTC), timezone, language)
    return {
        "expert": expert,
        "name": first_of(human, NAMES, language),
        "style": first_of(human, STYLES, language) or first_of(self_image, (*STYLES, "tone"), language),
        "concerns": first_of(human, CONCERNS, language),
        "visit_count": known.visit_count,
        "last_visit": known.last_visit,
        "last_topic": "; ".join(known.last_topics) or None,
        "card": memory_text(content, card, language)[0],
    }
