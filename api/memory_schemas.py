"""What answers about a conversation's summary and topics look like."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field


class PlaceView(BaseModel):
    """A message, by its place in its conversation."""

    message_id: UUID
    created_at: datetime


class SummaryView(BaseModel):
    """A conversation's rolling summary; of one that has none yet, all is null or 0."""

    summary: str | None
    summary_version: int = Field(description="One more with every change.")
    covered_through: PlaceView | None = Field(description="The last message that the summary covers.")
    covered_message_count: int
    increments_since_full: int = Field(description="Since it was made from the whole conversation.")
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
