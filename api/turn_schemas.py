"""What turns, conversations, messages and feedback look like."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.chat_schemas import MemoryChangeView, SourceView
from api.schemas import Answer, StrictModel
from services.conversations.feedback import MAX_COMMENT_CHARACTERS, MAX_TAGS, Feedback, Rating
from services.conversations.transcript import LONGEST_TITLE
from services.conversations.turn import TurnStatus
from services.conversations.values import no_nul, not_blank

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

    rating: Rating | Literal[1, -1] = Field(description="up or down; 1 and -1 are the same.")
    comment: Comment | None = Field(None, description=f"1 to {MAX_COMMENT_CHARACTERS} characters.")
    tags: list[Tag] = Field(
        default_factory=list, max_length=MAX_TAGS, description="Words of your own, each of 1 to 64 characters."
    )

    @property
    def direction(self) -> Rating:
        """The rating as a word."""
        return {1: "up", -1: "down", "up": "up", "down": "down"}[self.rating]  # type: ignore[return-value]


class _TurnView(Answer):
    id: UUID
    status: TurnStatus
    route_decision: dict[str, Any] | None
    usage: dict[str, int] | None
    timings: dict[str, float] | None
    degraded: list[str]
    error: dict[str, Any] | None
    started_at: datetime
    finished_at: datetime | None
    feedback: Feedback | None


class ListedTurnView(_TurnView):
    """A turn of a conversation, without its texts."""

    user_message_id: UUID
    assistant_message_id: UUID | None
    sources: list[SourceView] = Field(description="Passages that the answer's prompt showed.")
    memory_changes: list[MemoryChangeView]
    accepted_at: datetime = Field(description="When its message came.")
    experiments: dict[str, str] | None = Field(description="Variants by the names of their experiments.")
    branch_id: UUID | None = Field(description="The branch that it is on; null = the conversation as it goes on.")


class TurnView(_TurnView):
    """A turn: one user message and everything that answers it."""

    conversation_id: UUID
    user_message_id: UUID
    assistant_message_id: UUID | None
    answer: str | None
    context_report: dict[str, Any] | None
    experiments: dict[str, str] | None = Field(description="Variants by the names of their experiments.")


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
