"""The tone of users, and a brief description of them."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from api.access import MemoryReader, ServicesOf
from api.paging import After, Limit, cursor_of, next_of
from api.problems import documented
from api.request_bodies import JsonRoute
from api.space_schemas import SpaceQuery
from api.tone_schemas import PersonaView, TonePage
from services.context.sources.core_memory import CONCERNS, NAMES, STYLES, first_of, last_talk, memory_text
from services.conversations.values import Id
from services.text.language import language_of

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/users/{user_id}",
    tags=["tone"],
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
)

User = Annotated[Id, Path()]


@router.get("/tone", response_model=TonePage)
async def tone(
    user_id: User,
    services: ServicesOf,
    caller: MemoryReader,
    session_id: Annotated[Id | None, Query(description="Only this conversation.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Any:
    """How a user sounded, turn by turn, newest last."""
    caller.act_for(user_id)
    place = cursor_of(after)
    await services.users.get(caller.tenant_id, user_id)
    items = await services.tones.of_user(
        caller.tenant_id, user_id, session_id=session_id, after=place, limit=limit
    )
    return {"items": items, "next": next_of([(item.at, item.turn_id) for item in items], limit)}


@router.get("/persona", response_model=PersonaView)
async def persona(
    user_id: User,
    services: ServicesOf,
    caller: MemoryReader,
    expert: Annotated[Id, Query(description="Name of the expert who knows them.")] = "default",
    space: SpaceQuery = None,
) -> Any:
    """A user in brief, from core memory and their visits."""
    caller.act_for(user_id)
    owner = await services.memory.core.owner(caller.tenant_id, user_id, expert, space)
    content = await services.memory.core.known(owner)
    known = await services.user_activity.read(owner)
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
        "mood": known.mood if known.mood != "neutral" else None,
        "card": memory_text(content, card, language)[0],
    }
