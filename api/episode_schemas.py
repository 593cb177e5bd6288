"""Requests and answers about episodes."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from api.moments import Moment, PastMoment, Validity
from api.schemas import MAX_PAGE, StrictModel
from services.conversations.values import Id, SpaceName, no_nul, not_blank
from services.memory.catalog import CatalogEntry
from services.memory.episodes.episode import MAX_CONTENT_CHARACTERS, EpisodeType, Origin, Source, WrittenType

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
