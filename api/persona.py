"""A user in brief."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from api.access import MemoryReader, ServicesOf
from api.json_router import PathId, json_router
from api.spaces import SpaceQuery
from services.context.sources.core_memory import CONCERNS, NAMES, STYLES, first_of, last_talk, memory_text
from services.context.sources.time import user_activity
from services.conversations.values import Id
from services.text.language import language_of

router = json_router("/api/v1/users/{user_id}", "persona", HTTPStatus.NOT_FOUND)


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


@router.get("/persona", response_model=PersonaView)
async def persona(
    user_id: PathId,
    services: ServicesOf,
    caller: MemoryReader,
    expert: Annotated[Id, Query(description="Name of the expert who knows them.")] = "default",
    space: SpaceQuery = None,
) -> Any:
    """A user in brief, from core memory and their visits."""
    owner = await services.memory.core.owner(caller.tenant_id, user_id, expert, space)
    content = await services.memory.core.known(owner)
    known = await user_activity(services.database, owner)
    user = await services.users.get(caller.tenant_id, user_id)
    human, self_image = content.get("human", {}), content.get("persona", {})
    language = language_of(str(value) for fields in content.values() for value in fields.values())
    card = last_talk(known, datetime.now(UTC), user.timezone, language)
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
