"""What turns, conversations, messages and feedback look like."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.schemas import Answer, StrictModel
from services.conversations.feedback import MAX_COMMENT_CHARACTERS, MAX_TAGS, Rating
from services.conversations.transcript import LONGEST_TITLE
from services.conversations.turn import TurnStatus
from services.conversations.values import no_nul, not_blank
from services.memory.episodes.episode import Source
from services.memory.lineage.prompt import ShownItem
from state.memory import MemoryChange
from state.prompt import Source as PassageSource

Comment = Annotated[
    str, StringConstraints(max_length=MAX_COMMENT_CHARACTERS), AfterValidator(no_nul), AfterValidator(not_blank)
]
Title = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TITLE),
    AfterValidator(no_nul),
]
Tag = Annotated[str, StringConstraints(max_length=64), AfterValidator(no_nul), AfterValidator(not_blank)]


class ApprovalRequest(StrictModel):
    """A user's answer to the question whether a tool may be called."""

    approval_id: UUID = Field(description="Of the event `approval`.")
    approved: bool


class FeedbackRequest(StrictModel):
    """A user's opinion of an answer."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rating": "up"}]})

    rating: Rating
    comment: Comment | None = Field(None, description=f"1 to {MAX_COMMENT_CHARACTERS} characters.")
    tags: list[Tag] = Field(
        default_factory=list, max_length=MAX_TAGS, description="Words of your own, each of 1 to 64 characters."
    )


class ConversationRequest(StrictModel):
    """A change of a conversation; fields that are not given stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Bread", "pinned": True}]})

    title: Title | None = Field(None, description=f"1 to {LONGEST_TITLE} characters.")
    pinned: bool | None = None


class MessageView(BaseModel):
    """One message. `completed` is false for an answer that broke off."""

    id: UUID
    turn_id: UUID
    role: Literal["user", "assistant"]
    content: str
    parts: list[dict[str, Any]]
    completed: bool
    created_at: datetime
    external_id: str | None = Field(description="The caller's own id of a message that was imported.")
    speaker: str | None = Field(description="Who said a message that was imported, if known.")


class SectionView(BaseModel):
    """A section of the prompt."""

    name: str
    tokens: int = Field(description="Estimated.")
    text: str | None = Field(description="The text as the model read it; null if there is none, or none is kept.")


class RecalledView(BaseModel):
    """A unit that recall found: a message, or a written memory."""

    unit_id: UUID
    episode_id: UUID
    text: str | None = Field(description="null = memory no longer has it.")
    episode_type: str | None
    created_at: datetime | None
    conversation_id: UUID | None
    expert: str | None
    shown: bool = Field(description="Whether the prompt showed it.")
    reason: str | None = Field(description="Why it was left out.")
    score: float
    relevance: float
    likelihood: float = Field(description="Probability that it is relevant to the message, 0 to 1.")
    cosine: float | None = Field(description="Similarity in meaning; null = not known.")
    ranks: dict[str, int] = Field(description="Its position, from 1, in each list that found it.")
    sources: list[Source] = Field(description="The messages that it comes from.")


class RecallView(BaseModel):
    """What was searched for and found in earlier conversations."""

    queries: list[str | dict[str, Any]]  # of turns answered by earlier versions with the kind of each
    found: int
    ms: float | None
    items: list[RecalledView] = Field(description="Most likely first.")


class ShownSource(PassageSource):
    """A passage that the prompt showed."""

    text: str | None
    """Null = the document is no longer there."""


class NodeTimeView(BaseModel):
    """Total running time of a node."""

    name: str
    ms: float


class TurnOperationView(BaseModel):
    """A memory operation that the turn caused."""

    id: UUID
    type: str
    field: str | None
    old_value: Any
    new_value: Any
    query: str | None
    at: datetime
    undone_at: datetime | None


class ExplanationView(Answer):
    """Why the answer of a turn is as it is."""

    turn_id: UUID
    conversation_id: UUID
    user_id: str
    expert: str
    status: TurnStatus
    route: dict[str, Any] | None
    usage: dict[str, int] | None
    degraded: list[str]
    budget: int = Field(description="Tokens allowed for the prompt, not counting the message; 0 = not known.")
    strategy: str | None
    epoch: int | None
    epoch_reason: str | None
    prefix: dict[str, float] = Field(description="`tokens` and `share` equal to the previous prompt.")
    features: list[str] = Field(description="Features that were on in the turn.")
    texts: Literal["kept", "withdrawn", "none"] = Field(
        description="`withdrawn`: something the prompt may show has since been removed from memory."
    )
    sections: list[SectionView]
    dropped: list[dict[str, Any]]
    recall: RecallView
    lineage: list[ShownItem] = Field(
        description="Where what the prompt showed comes from, as memory has it now: for each section its derived "
        "items, with their origin (the least trusted one of the words in them), maker and sources."
    )
    sources: list[ShownSource]
    nodes: list[NodeTimeView]
    first_token_ms: float | None
    total_ms: float | None
    memory_changes: list[MemoryChange]
    operations: list[TurnOperationView]
    finished_at: datetime | None
