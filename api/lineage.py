"""Lineage: what something was made from, and what was made of it."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Query

from api.access import MemoryReader, ServicesOf
from api.json_router import PathId, json_router
from api.schemas import answered
from api.spaces import SpaceQuery
from services.conversations.values import Id
from services.memory.lineage.tracing import Direction, Trace

router = json_router("/api/v1/users/{user_id}", "memory", HTTPStatus.NOT_FOUND)


@dataclass(frozen=True, kw_only=True)
class LineageView(Trace):
    """Everything above or below something."""

    direction: Direction


@router.get("/lineage", response_model=answered(LineageView))
async def lineage(
    user_id: PathId,
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
    return {**vars(trace), "direction": direction}
