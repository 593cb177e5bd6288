"""Why an answer is as it is, in the form of the API."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from api.chat_schemas import MemoryChangeView, SourceView
from services.conversations.turn import TurnStatus
from services.memory.episodes.episode import Source
from services.memory.lineage.tracing import ItemValue, Kind, Origin


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


class PassageSourceView(SourceView):
    """A passage that the prompt showed."""

    text: str | None = Field(description="null = the document is no longer there.")


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


class LineageSourceView(BaseModel):
    """A message, or something derived, that an item was made from."""

    kind: Kind
    id: UUID
    text: str | None = Field(description="Null for a turn's episode, whose text is that of its messages.")
    at: datetime
    origin: Origin
    made_by: dict[str, Any]


class ShownItemView(LineageSourceView):
    """Something derived that a section of the prompt showed, and what it was made from."""

    section: str
    values: list[ItemValue] = Field(description="Of a section of core memory.")
    sources: list[LineageSourceView] = Field(description="The oldest twelve of them.")
    source_count: int


class ExplanationView(BaseModel):
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
    lineage: list[ShownItemView] = Field(
        description="Where what the prompt showed comes from, as memory has it now: for each section its derived "
        "items, with their origin (the least trusted one of the words in them), maker and sources."
    )
    sources: list[PassageSourceView]
    nodes: list[NodeTimeView]
    first_token_ms: float | None
    total_ms: float | None
    memory_changes: list[MemoryChangeView]
    operations: list[TurnOperationView]
    finished_at: datetime | None
