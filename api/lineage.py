"""Lineage: what something was made from, and what was made of it."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, Field

from api.access import MemoryReader, ServicesOf
from api.json_router import json_router
from api.schemas import Answer
from api.space_schemas import SpaceQuery
from services.conversations.values import Id
from services.memory.lineage.origins import Origin
from services.memory.lineage.tracing import Direction, Edge, Item, Kind

router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)


class ValueView(BaseModel):
    """A single value of core memory."""

    field: str
    text: str
    message_id: UUID | None = Field(description="The message that brought it in.")
    actor: str | None
    made_by: dict[str, Any]


class ItemView(BaseModel):
    """A message, or something derived."""

    kind: Kind
    id: UUID = Field(
        description="Of a summary and a persona card the conversation's, of of a private note that of its answer."
    )
    text: str | None = Field(description="Null for a turn's episode, whose text is that of its messages.")
    at: datetime
    made_by: dict[str, Any] = Field(
        description="Its maker, as far as it applies and is known: `actor`, `turn_id`, `job`, `job_id`, `prompt` "
        "(purpose and version), `model`."
    )
    origin: Origin = Field(
        description="The least trusted origin of the words that it is made of: a document or pasted text, an "
        "import, a tool's result, the assistant, an operator, the user."
    )
    state: Literal["current", "superseded", "archived", "retracted"]
    values: list[ValueView] = Field(description="Of a section of core memory.")


class LineageView(Answer):
    """Everything above or below something."""

    of: ItemView
    direction: Direction
    items: list[ItemView] = Field(description="Without the one that was asked about, by kind and time.")
    edges: list[Edge]
    is_complete: bool = Field(description="False beyond 50,000 edges.")


@router.get("/lineage", response_model=LineageView)
async def lineage(
    user_id: Annotated[Id, Path()],
    of: Annotated[
        str,
        Query(
            max_length=200,
            description="`kind:id`; a section of core memory also by its name, a day by its date.",
            examples=["episode:0190a000-0000-7000-8000-000000000001", "core_memory:human", "day:2026-05-01"],
        ),
    ],
    services: ServicesOf,
    caller: MemoryReader,
    direction: Direction = "up",
    expert: Annotated[Id, Query(description="Whose section or day, where it is named.")] = "default",
    space: SpaceQuery = None,
) -> Any:
    """Trace something `up` to the messages it was made from, or `down` to everything that was made of it."""
    found, node = await services.lineage.find(caller.tenant_id, user_id, of, expert=expert, space=space)
    trace = await services.lineage.of_node(caller.tenant_id, found, node, direction)
    return {
        "of": _view(trace.of),
        "direction": direction,
        "items": [_view(item) for item in trace.items],
        "edges": trace.edges,
        "is_complete": trace.is_complete,
    }


def _view(item: Item) -> dict[str, Any]:
    return {**vars(item), "values": [vars(value) for value in item.values]}
