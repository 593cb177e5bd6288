"""Episodes of users: list, search, write, edit and remove them."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from fastapi.responses import StreamingResponse

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.episode_schemas import (
    EpisodeChangeRequest,
    EpisodeListQuery,
    EpisodeSearchRequest,
    EpisodeView,
    ListedEpisodeView,
    NewEpisodeRequest,
    WholeEpisodeView,
)
from api.json_router import NO_CONTENT, PathId, json_router
from api.long_json import item_list
from api.moments import validity_fields
from api.paging import cursor_of, next_of
from api.problems import documented
from api.schemas import Page, answered
from services.bootstrap import Services
from services.conversations.values import Id
from services.memory.archive import FoundEpisode, FoundEpisodes
from services.memory.catalog import CatalogEntry, EpisodeFilter
from services.memory.episodes.episode import IMPORTANCE, NewEpisode, Scope
from services.memory.operations import Trigger
from services.search.queries import Utterance

router = json_router("/api/v1/users/{user_id}/episodes", "memory", HTTPStatus.NOT_FOUND)

_BY_USER = Trigger("user")
_Whole = answered(WholeEpisodeView)


@router.get("", response_model=Page[ListedEpisodeView])
async def episodes(
    user_id: PathId, services: ServicesOf, caller: MemoryReader, query: Annotated[EpisodeListQuery, Query()]
) -> Any:
    """Episodes of a user that all spaces share, newest first; with `space`, also those of that space."""
    wanted = EpisodeFilter(**query.model_dump(exclude={"after", "limit"}))
    items = await services.memory.catalog.page(
        caller.tenant_id, user_id, wanted, after=cursor_of(query.after), limit=query.limit
    )
    following = next_of(items, query.limit)
    pieces = item_list(ListedEpisodeView, map(_view, items), {"next": following})
    return StreamingResponse(pieces, media_type="application/json")


@router.get("/{episode_id}", response_model=_Whole)
async def episode(user_id: PathId, episode_id: UUID, services: ServicesOf, caller: MemoryReader) -> Any:
    """One episode, with the messages it comes from."""
    return await _whole(services, caller.tenant_id, user_id, episode_id)


@router.patch("/{episode_id}", response_model=_Whole, responses=documented(HTTPStatus.CONFLICT))
async def edit(
    user_id: PathId, episode_id: UUID, body: EpisodeChangeRequest, services: ServicesOf, caller: MemoryWriter
) -> Any:
    """Change a written memory; 409 for a turn, because what was said cannot be rewritten."""
    await services.memory.catalog.edit(caller.tenant_id, user_id, episode_id, _BY_USER, **body.model_dump())
    return await _whole(services, caller.tenant_id, user_id, episode_id)


@router.put("/{episode_id}/pin", response_model=_Whole)
async def pin(user_id: PathId, episode_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Pin a memory: it neither fades nor is merged, and no proposal drops it."""
    await services.memory.pins.set_on_episode(caller.tenant_id, user_id, episode_id, pinned=True)
    return await _whole(services, caller.tenant_id, user_id, episode_id)


@router.delete("/{episode_id}/pin", response_model=_Whole)
async def unpin(user_id: PathId, episode_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Unpin a memory."""
    await services.memory.pins.set_on_episode(caller.tenant_id, user_id, episode_id, pinned=False)
    return await _whole(services, caller.tenant_id, user_id, episode_id)


@router.post("/{episode_id}/restore", response_model=_Whole, responses=documented(HTTPStatus.CONFLICT))
async def restore(user_id: PathId, episode_id: UUID, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Bring a memory back that maintenance archived or removed; 409 if it did neither."""
    await services.upkeep.restore(caller.tenant_id, user_id, episode_id)
    return await _whole(services, caller.tenant_id, user_id, episode_id)


@router.post("/search", response_model=answered(FoundEpisodes))
async def search(user_id: PathId, body: EpisodeSearchRequest, services: ServicesOf, caller: MemoryReader) -> Any:
    """Search everything said by or to a user, and what was remembered of it; best first."""
    owner = await services.memory.core.owner(caller.tenant_id, user_id, body.expert, body.space)
    scope = Scope.of(
        owner,
        conversation_id=body.conversation_id,
        episode_type=body.episode_type,
        since=body.since,
        until=body.until,
        as_of=body.as_of,
    )
    said = [Utterance(each.role, each.content, each.speaker) for each in body.recent]
    now = body.asked_at or body.as_of or datetime.now(UTC)
    found = await services.memory.archive.search(scope, body.query, top_k=body.top_k, now=now, said=said)
    pieces = item_list(FoundEpisode, found.items, {"degraded": found.degraded})
    return StreamingResponse(pieces, media_type="application/json")


@router.post("", response_model=EpisodeView, status_code=HTTPStatus.CREATED)
async def insert(user_id: PathId, body: NewEpisodeRequest, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Write a memory; it can be recalled from the next turn on."""
    owner = await services.memory.core.owner(caller.tenant_id, user_id, body.expert, body.space, make_space=True)
    importance = IMPORTANCE[body.episode_type] if body.importance is None else body.importance
    new = NewEpisode(body.content, body.episode_type, importance, "user_said")
    episode_id = await services.memory.archive.insert(owner, new, _BY_USER)
    return {
        "id": episode_id,
        "content": new.content.strip(),
        "episode_type": new.episode_type,
        "importance": new.importance,
    }


@router.delete("/{episode_id}", **NO_CONTENT)
async def remove(
    user_id: PathId,
    episode_id: UUID,
    services: ServicesOf,
    caller: MemoryWriter,
    expert: Annotated[Id, Query(description="Name of the expert who remembers it.")] = "default",
) -> None:
    """Remove an episode from recall. The messages of a turn stay in their conversation."""
    owner = await services.memory.core.owner(caller.tenant_id, user_id, expert)
    await services.memory.archive.remove(owner, episode_id, _BY_USER)


async def _whole(services: Services, tenant_id: UUID, user_id: str, episode_id: UUID) -> dict[str, Any]:
    entry, sources = await services.memory.catalog.get(tenant_id, user_id, episode_id)
    return {**_view(entry), "sources": sources}


def _view(entry: CatalogEntry) -> dict[str, Any]:
    """The entry with the days on which it holds; of what was said, only its time is known."""
    text = entry.content if entry.episode_type != "turn" else ""
    return {**vars(entry), **validity_fields(text, entry.created_at)}
