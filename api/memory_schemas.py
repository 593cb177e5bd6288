"""Requests and answers about memory: summaries, topics, core memory, the log of operations."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.chat_schemas import MemoryChangeView
from api.episode_schemas import Text
from api.moments import ValidityView
from services.conversations.values import Id, SpaceName
from services.memory.content import MAX_SECTION_BYTES
from services.memory.episodes.episode import MAX_CONTENT_CHARACTERS
from services.memory.inquiry import MAX_QUESTION_CHARACTERS


class PlaceView(BaseModel):
    """The position of a message in its conversation."""

    message_id: UUID
    created_at: datetime


class SummaryView(BaseModel):
    """A conversation's rolling summary; all null or 0 if there is none yet."""

    summary: str | None
    summary_version: int = Field(description="One more with every change.")
    covered_through: PlaceView | None = Field(description="The last message that the summary covers.")
    covered_message_count: int
    increments_since_full: int = Field(description="Changes since it was made from the whole conversation.")
    updated_at: datetime | None


class TopicView(BaseModel):
    """A stretch of a conversation that was archived."""

    id: UUID
    title: str
    summary: str
    keywords: list[str]
    message_count: int
    first_message_id: UUID
    last_message_id: UUID
    first_message_at: datetime
    last_message_at: datetime
    created_at: datetime


class TopicPage(BaseModel):
    """Topics, oldest first. `next` is the `after` of the next page, or null."""

    items: list[TopicView]
    next: str | None


class TimedValueView(ValidityView):
    """A value of core memory that says when it holds."""

    field: str
    text: str


class PinnedValueView(BaseModel):
    """A value of core memory that is pinned."""

    field: str = Field(description="Its field; what is nested has a path of names.")
    text: str


class CoreMemorySectionView(BaseModel):
    """A section of core memory."""

    section: str
    content: dict[str, Any]
    version: int = Field(description="From 1; one more with every change.")
    updated_at: datetime
    validity: list[TimedValueView] = Field(description="Values that say when they hold.")
    pinned: list[PinnedValueView] = Field(description="Values that only the user takes away.")


class CoreMemoryPage(BaseModel):
    """Every section, by name; there is no second page."""

    items: list[CoreMemorySectionView]
    next: None = None


class CoreMemoryRequest(BaseModel):
    """The new content of a section."""

    content: dict[str, Any] = Field(description=f"Its whole content, at most {MAX_SECTION_BYTES} bytes of JSON.")
    expected_version: int | None = Field(
        None,
        ge=0,
        le=2**31 - 1,
        description="Replace it only at this version; 0 = only if there is no such section.",
    )


class PinRequest(BaseModel):
    """A value of a section to pin or unpin."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"field": "allergies"}]})

    field: Annotated[Text, StringConstraints(max_length=200)] = Field(
        description="Its field; what is nested has a path of names, such as `work.place`."
    )
    text: Annotated[Text, StringConstraints(max_length=MAX_CONTENT_CHARACTERS)] | None = Field(
        None, description="The value as the section has it; null = every value of the field."
    )
    pinned: bool = Field(True, description="false = unpin.")


class RollbackRequest(BaseModel):
    """The version of a section to restore."""

    version: int = Field(ge=1, le=2**31 - 1)


class SectionChangeView(BaseModel):
    """One change of a section."""

    version: int = Field(description="The version that it made.")
    old: dict[str, Any] | None
    new: dict[str, Any]
    actor: str = Field(description="model, user, filing or import.")
    trigger_message_id: UUID | None = Field(description="The message that made it change, if there was one.")
    at: datetime


class SectionChangePage(BaseModel):
    """Changes, newest first. `next` is the `after` of the next page, or null."""

    items: list[SectionChangeView]
    next: str | None


class OperationView(BaseModel):
    """One memory operation."""

    id: UUID
    expert: str | None = Field(description="Whose memory of the user it is.")
    type: str
    field: str | None = Field(description="What was changed, such as a section of core memory.")
    old_value: Any
    new_value: Any
    query: str | None
    results: Any
    trigger: dict[str, Any] = Field(description="The `actor`, and the cause.")
    conversation_id: UUID | None
    turn_id: UUID | None
    space: str | None = Field(description="The space whose memory it is; null = what all spaces share.")
    at: datetime
    undone_at: datetime | None = Field(description="null = not undone.")


class UndoneView(BaseModel):
    """An operation that was undone."""

    operation_id: UUID
    undone_at: datetime
    already: bool = Field(description="Whether it had been undone before; then nothing was changed now.")


class ProposalSourceView(BaseModel):
    """A message that a proposal rests on."""

    message_id: UUID
    role: Literal["user", "assistant"]
    speaker: str | None
    content: str
    created_at: datetime


class ProposedMemoryView(BaseModel):
    """One of two memories that a proposal is about."""

    id: UUID = Field(description="Its id; of a value of core memory that of its section.")
    text: str
    created_at: datetime = Field(description="When it was said or written.")
    messages: list[ProposalSourceView] = Field(description="Messages that it comes from.")
    section: str | None = Field(description="Section of a value of core memory; null = a memory.")
    field: str | None = Field(description="Its field.")


class ProposalView(BaseModel):
    """A change of memory that waits for the user, or was settled."""

    id: UUID
    kind: Literal["remember", "forget", "duplicate", "contradiction"]
    text: str = Field(description="What would be remembered or forgotten; of two memories, the one that stays.")
    replaces: str | None = Field(description="What it would replace; of two memories, the one that goes.")
    state: Literal["waiting", "accepted", "rejected", "undone"]
    memories: list[ProposedMemoryView] = Field(
        description="Of `duplicate` and `contradiction`, the memory that stays and the one that goes."
    )
    messages: list[ProposalSourceView] = Field(description="Of the others, the message of the turn.")
    expert: str | None
    conversation_id: UUID | None
    turn_id: UUID | None
    at: datetime


class ProposalPage(BaseModel):
    """Proposals, newest first. `next` is the `after` of the next page, or null."""

    items: list[ProposalView]
    next: str | None


class SettlementRequest(BaseModel):
    """What the user decides."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"accept": True}]})

    accept: bool


class SettledView(BaseModel):
    """A proposal that was settled."""

    accepted: bool
    change: MemoryChangeView | None = Field(description="Of one that was accepted and is not about two memories.")


class FoundProposalsView(BaseModel):
    """What a search for duplicates and contradictions came to."""

    proposed: int = Field(description="Pairs that wait for the user now.")
    applied: int = Field(description="Pairs that were settled at once, by the tenant's policy.")


class OperationPage(BaseModel):
    """Operations, newest first. `next` is the `after` of the next page, or null."""

    items: list[OperationView]
    next: str | None


class MemoryQuestionRequest(BaseModel):
    """A question about the user."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "What is my dog called?"}]}
    )

    question: Annotated[Text, StringConstraints(max_length=MAX_QUESTION_CHARACTERS)] | None = Field(
        None, description="null = what is known about the user at all."
    )
    expert: Id = Field("default", description="Name of the expert who remembers it.")
    space: SpaceName | None = Field(None, description="Also what is known in this space.")


class SourceMessageView(BaseModel):
    """A message that a record comes from."""

    message_id: UUID
    external_id: str | None
    role: Literal["user", "assistant"]
    speaker: str | None
    content: str = Field(description="Its first 300 characters.")
    created_at: datetime


class RecordView(BaseModel):
    """A source of a statement."""

    kind: Literal["core_memory", "episode"]
    text: str
    at: datetime | None = Field(description="When it was said or written.")
    section: str | None = Field(description="Of core memory, with `field`.")
    field: str | None
    episode_id: UUID | None
    messages: list[SourceMessageView]


class StatementView(BaseModel):
    """One statement about the user."""

    text: str
    sources: list[RecordView]


class MemoryAnswerView(BaseModel):
    """An answer from memory."""

    question: str
    answer: str = Field(description="All statements, or that there is none.")
    statements: list[StatementView]
    answered_by: Literal["model", "records"] = Field(description="`records`: each statement is a record.")
    degraded: list[str] = Field(description="What did not answer: `milvus`, `embedding`, `recall`, `model`.")
