"""Answers about how a user sounds, and about who they are in brief."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from state.prompt import DominantTone, Pace


class EmotionsView(BaseModel):
    """Score of each emotion, 0 to 1."""

    anxiety: float = 0.0
    excitement: float = 0.0
    confusion: float = 0.0
    trust: float = 0.0
    frustration: float = 0.0


class ToneView(BaseModel):
    """How a user sounded in a turn."""

    turn_id: UUID
    conversation_id: UUID
    session_id: str
    dominant: DominantTone
    scores: EmotionsView = Field(description="Over the last five messages, the newest weighing most.")
    message_scores: EmotionsView = Field(description="Of the turn's message alone.")
    opinion: EmotionsView | None = Field(description="A model's, of the message alone; null = none.")
    empathy: float = Field(description="0 to 1; it rises when the user is dissatisfied with an answer.")
    pace: Pace
    at: datetime


class TonePage(BaseModel):
    """Turns, newest last. `next` is the `after` of the next page, or null."""

    items: list[ToneView]
    next: str | None


class PersonaView(BaseModel):
    """A user in brief; null = not known."""

    expert: str
    name: str | None
    style: str | None
    concerns: str | None
    visit_count: int = Field(description="Up to 1000.")
    last_visit: datetime | None
    last_topic: str | None
    mood: DominantTone | None
    card: str = Field(description="As a prompt's beginning shows it from the next epoch on; empty = nothing.")
