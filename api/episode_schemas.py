"""What requests and answers about episodes look like."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from services.conversations.values import Id, no_nul, not_blank
from services.memory.episode import MAX_CONTENT_CHARACTERS, EpisodeType, WrittenType

MAX_TOP_K = 100
_MAX_QUERY_CHARACTERS = 8000
_MAX_SAID = 12

Text = Annotated[str, AfterValidator(no_nul), AfterValidator(not_blank)]


class SaidRequest(BaseModel):
    """A message that was said just before."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: Annotated[str, AfterValidator(no_nul), StringConstraints(max_length=_MAX_QUERY_CHARACTERS)]
    speaker: Annotated[str, AfterValidator(no_nul), StringConstraints(max_length=200)] = ""


class EpisodeSearchRequest(BaseModel):
    """What is looked for in a user's memory."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[Text, StringConstraints(max_length=_MAX_QUERY_CHARACTERS)]
    top_k: int = Field(10, ge=1, le=MAX_TOP_K, description="Episodes at the most.")
    episode_type: EpisodeType | None = None
    conversation_id: UUID | None = Field(None, description="Only what is of this conversation.")
    since: AwareDatetime | None = Field(None, description="Only what is of this time or later.")
    until: AwareDatetime | None = Field(None, description="Only what is of before this time.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    recent: list[SaidRequest] = Field(
        [], max_length=_MAX_SAID, description="What was said just before, oldest first: a query may refer to it."
    )
    asked_at: AwareDatetime | None = Field(None, description="From when age is counted; null = now.")


class SourceView(BaseModel):
    """A message that an episode comes from."""

    message_id: UUID
    external_id: str | None = Field(description="The caller's own id of a message that was imported.")
    role: Literal["user", "assistant"]
    speaker: str | None
    content: str
    created_at: datetime


class FoundEpisodeView(BaseModel):
    """An episode that was found."""

    id: UUID
    content: str = Field(description="The memory as it was written; of a turn what was said, and by whom.")
    episode_type: EpisodeType
    importance: float
    score: float = Field(description="Comparable within one search only.")
    created_at: datetime
    sources: list[SourceView] = Field(
        description="In order. Of a turn, those of its messages that bear on the query."
    )


class FoundEpisodes(BaseModel):
    """What a search found, best first."""

    items: list[FoundEpisodeView]
    degraded: list[str] = Field(description="What did not answer: `milvus`, `embedding`. The rest was searched.")


class NewEpisodeRequest(BaseModel):
    """A memory that is to be kept."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[Text, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)]
    episode_type: WrittenType = "context"
    importance: float | None = Field(None, ge=0, le=1, description="null = what is usual for the type.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")


class EpisodeView(BaseModel):
    """A memory that was written."""

    id: UUID
    content: str
    episode_type: EpisodeType
    importance: float
