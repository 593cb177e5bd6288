"""Episodes of users: list, search, write, edit and remove them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import Query
from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from api.access import ExpertQuery, ReadUser, UserOfPath, WrittenUser
from api.paging import NO_CONTENT, cursor_of, json_router, next_of
from api.problems import CONFLICT
from api.schemas import MAX_PAGE, Page, PastMoment, StrictModel, Validity, answered, validity_fields
from services.conversations.values import Id, Moment, SpaceName, not_blank
from services.memory.archive import FoundEpisodes
from services.memory.catalog import CatalogEntry, EpisodeFilter
from services.memory.episodes.episode import (
    IMPORTANCE,
    MAX_CONTENT_CHARACTERS,
    EpisodeType,
    NewEpisode,
    Origin,
    Scope,
    Source,
    WrittenType,
)
from services.search.queries import Utterance
from services.validation import no_nul

MAX_TOP_K = 100
_MAX_QUERY_CHARACTERS = 8000
_MAX_SAID = 12

Text = Annotated[str, AfterValidator(no_nul), AfterValidator(not_blank)]


class SaidRequest(StrictModel):
    """A preceding message."""

    role: Literal["user", "assistant"]
    content: Annotated[str, AfterValidator(no_nul), StringConstraints(max_length=_MAX_QUERY_CHARACTERS)]
    speaker: Annotated[str, AfterValidator(no_nul), StringConstraints(max_length=200)] = ""


class EpisodeSearchRequest(StrictModel):
    """A search in a user's memory."""

    query: Annotated[Text, StringConstraints(max_length=_MAX_QUERY_CHARACTERS)]
    top_k: int = Field(10, ge=1, le=MAX_TOP_K, description="Episodes at the most.")
    episode_type: EpisodeType | None = None
    conversation_id: UUID | None = Field(None, description="Only from this conversation.")
    since: Moment | None = Field(None, description="Only what is of this time or later.")
    until: Moment | None = Field(None, description="Only what is of before this time.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    space: SpaceName | None = Field(None, description="Also what was said and remembered in this space.")
    recent: list[SaidRequest] = Field(
        [], max_length=_MAX_SAID, description="Preceding messages, oldest first, to which the query may refer."
    )
    asked_at: Moment | None = Field(None, description="Time from which age is counted; null = `as_of`, or now.")
    as_of: PastMoment = None


class NewEpisodeRequest(StrictModel):
    """A memory to write."""

    content: Annotated[Text, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)]
    episode_type: WrittenType = "context"
    importance: float | None = Field(None, ge=0, le=1, description="null = the default for the type.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    space: SpaceName | None = Field(None, description="The space that it belongs to; null = all share it.")


class EpisodeView(BaseModel):
    """A memory that was written."""

    id: UUID
    content: str
    episode_type: EpisodeType
    importance: float


class EpisodeListQuery(StrictModel):
    """Filters for a list of episodes."""

    expert: Id | None = Field(None, description="Name of the expert whose memory it is; unset = all.")
    space: SpaceName | None = Field(None, description="Also those of this space.")
    episode_type: EpisodeType | None = None
    origin: Origin | None = None
    conversation_id: UUID | None = None
    since: Moment | None = Field(None, description="Only what is of this time or later.")
    until: Moment | None = Field(None, description="Only what is of before this time.")
    contains: Annotated[Text, StringConstraints(max_length=200)] | None = Field(
        None, description="Only episodes that contain this text, case-insensitive."
    )
    superseded: bool = Field(False, description="Also superseded ones.")
    retracted: bool = Field(False, description="Also those that the user asked memory to forget.")
    archived: bool | None = Field(None, description="true = only archived ones, false = none of them.")
    pinned: bool | None = Field(None, description="true = only pinned ones, false = none of them.")
    as_of: PastMoment = None
    after: str | None = Field(None, max_length=200, description="The `next` of the previous page.")
    limit: int = Field(50, ge=1, le=MAX_PAGE)


@dataclass(frozen=True, kw_only=True)
class ListedEpisodeView(CatalogEntry, Validity):
    """An episode as it is listed."""


@dataclass(frozen=True, kw_only=True)
class WholeEpisodeView(ListedEpisodeView):
    """An episode with the messages it comes from."""

    sources: list[Source]


class EpisodeChangeRequest(StrictModel):
    """A change of a written memory; fields that are not given stay."""

    content: Annotated[Text, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)] | None = None
    importance: float | None = Field(None, ge=0, le=1)
    episode_type: WrittenType | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.content is None and self.importance is None and self.episode_type is None:
            raise ValueError("nothing to change; give content, importance or episode_type")
        return self


router = json_router("/api/v1/users/{user_id}/episodes", "memory", HTTPStatus.NOT_FOUND)

_Whole = answered(WholeEpisodeView)


@router.get("", response_model=Page[ListedEpisodeView])
async def episodes(user: ReadUser, query: Annotated[EpisodeListQuery, Query()]) -> Any:
    """Episodes of a user that all spaces share, newest first; with `space`, also those of that space."""
    wanted = EpisodeFilter(**query.model_dump(exclude={"after", "limit"}))
    after = cursor_of(query.after)
    items = await user.services.memory.catalog.page(*user.named, wanted, after=after, limit=query.limit)
    return {"items": list(map(_view, items)), "next": next_of(items, query.limit)}


@router.get("/{episode_id}", response_model=_Whole)
async def episode(user: ReadUser, episode_id: UUID) -> Any:
    """One episode, with the messages it comes from."""
    return await _whole(user, episode_id)


@router.patch("/{episode_id}", response_model=_Whole, responses=CONFLICT)
async def edit(user: WrittenUser, episode_id: UUID, body: EpisodeChangeRequest) -> Any:
    """Change a written memory; 409 for a turn, because what was said cannot be rewritten."""
    await user.services.memory.catalog.edit(*user.named, episode_id, user.trigger, **body.model_dump())
    return await _whole(user, episode_id)


@router.put("/{episode_id}/pin", response_model=_Whole)
async def pin(user: WrittenUser, episode_id: UUID) -> Any:
    """Pin a memory: it neither fades nor is merged, and no proposal drops it."""
    await user.services.memory.pins.set_on_episode(*user.named, episode_id, pinned=True)
    return await _whole(user, episode_id)


@router.delete("/{episode_id}/pin", response_model=_Whole)
async def unpin(user: WrittenUser, episode_id: UUID) -> Any:
    """Unpin a memory."""
    await user.services.memory.pins.set_on_episode(*user.named, episode_id, pinned=False)
    return await _whole(user, episode_id)


@router.post("/{episode_id}/restore", response_model=_Whole, responses=CONFLICT)
async def restore(user: WrittenUser, episode_id: UUID) -> Any:
    """Bring a memory back that maintenance archived or removed; 409 if it did neither."""
    await user.services.upkeep.restore(*user.named, episode_id)
    return await _whole(user, episode_id)


@router.post("/search", response_model=answered(FoundEpisodes))
async def search(user: ReadUser, body: EpisodeSearchRequest) -> Any:
    """Search everything said by or to a user, and what was remembered of it; best first."""
    narrowed = body.model_dump(include={"conversation_id", "episode_type", "since", "until", "as_of"})
    scope = Scope.of(await user.owner(body.expert, body.space), **narrowed)
    said = [Utterance(each.role, each.content, each.speaker) for each in body.recent]
    now = body.asked_at or body.as_of or datetime.now(UTC)
    return await user.services.memory.archive.search(scope, body.query, top_k=body.top_k, now=now, said=said)


@router.post("", response_model=EpisodeView, status_code=HTTPStatus.CREATED)
async def insert(user: WrittenUser, body: NewEpisodeRequest) -> Any:
    """Write a memory; it can be recalled from the next turn on."""
    owner = await user.owner(body.expert, body.space, make_space=True)
    importance = IMPORTANCE[body.episode_type] if body.importance is None else body.importance
    new = NewEpisode(body.content, body.episode_type, importance, "user_said")
    episode_id = await user.services.memory.archive.insert(owner, new, user.trigger)
    return {**vars(new), "id": episode_id, "content": new.content.strip()}


@router.delete("/{episode_id}", **NO_CONTENT)
async def remove(user: WrittenUser, episode_id: UUID, expert: ExpertQuery = "default") -> None:
    """Remove an episode from recall. The messages of a turn stay in their conversation."""
    await user.services.memory.archive.remove(await user.owner(expert), episode_id, user.trigger)


async def _whole(user: UserOfPath, episode_id: UUID) -> dict[str, Any]:
    entry, sources = await user.services.memory.catalog.get(*user.named, episode_id)
    return {**_view(entry), "sources": sources}


def _view(entry: CatalogEntry) -> dict[str, Any]:
    """Return the entry with the days on which it holds; for a turn these are not known."""
    text = entry.content if entry.episode_type != "turn" else ""
    return {**vars(entry), **validity_fields(text, entry.created_at)}
