"""Past turns asked again, in the form of the API."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from api.explanation_schemas import SectionView
from api.schemas import StrictModel
from graph.turns.requests import ReplayRequest
from services.conversations.values import Id

_MOST_SECTIONS = 30
_MOST_LEFT_OUT = 50


class ReplayBody(StrictModel):
    """How a turn is asked again."""

    memory: Literal["then", "now"] = Field(
        "then", description="The prompt as it was sent (then), or made of what memory holds today (now)."
    )
    model: Id | None = Field(None, description="Model to ask; null = the expert's.")
    expert: Id | None = Field(
        None, description="Expert to ask; null = the conversation's. Another one always has the memory of today."
    )
    without_sections: list[str] = Field(
        default_factory=list,
        max_length=_MOST_SECTIONS,
        description="Names of sections that the prompt as it was goes without.",
    )
    without: list[UUID] = Field(
        default_factory=list,
        max_length=_MOST_LEFT_OUT,
        description="Ids of memories and messages that a prompt of today's memory goes without.",
    )
    ask: bool = Field(True, description="Ask a model; false = only put the prompt as it was together again.")

    def as_request(self) -> ReplayRequest:
        """The request as the graph takes it."""
        return ReplayRequest(**self.model_dump())


class ReplayErrorView(BaseModel):
    """Why there is no answer."""

    code: str
    message: str
    retryable: bool


class AskedView(BaseModel):
    """A prompt, and what came of it."""

    answer: str | None = Field(description="null = no model was asked, or it did not answer.")
    sections: list[SectionView] | None = Field(description="The prompt in order; null = no text of it is kept.")
    recalled: list[UUID] = Field(description="Memories that the prompt showed.")
    usage: dict[str, int] | None
    ms: float | None = Field(
        description="Milliseconds: of the model for the prompt as it was, of the whole turn with today's memory."
    )
    error: ReplayErrorView | None


class ReplayView(BaseModel):
    """A turn as it was, and asked again. Nothing of it is stored."""

    turn_id: UUID
    user_id: str
    expert: str
    message: str
    finished_at: datetime
    same_prompt: bool | None = Field(
        description="Whether the prompt is byte for byte the one that was sent, by its stored digest; null for a "
        "prompt of today's memory."
    )
    overlap: float | None = Field(description="Share of their words that both answers have in common, 0 to 1.")
    then: AskedView
    now: AskedView
