"""Requests and answers about memory: summaries, topics, core memory, the log of operations."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.chat_schemas import MemoryChangeView
from api.moments import Validity
from api.schemas import Answer, StrictModel
from services.memory.content import MAX_SECTION_BYTES
from services.memory.pins import PinnedValue


class PlaceView(BaseModel):
    """The position of a message in its conversation."""

    message_id: UUID
    created_at: datetime


class SummaryView(Answer):
    """A conversation's rolling summary; all null or 0 if there is none yet."""

    summary: str | None = None
    summary_version: int = Field(0, description="One more with every change.")
    covered_through: PlaceView | None = Field(None, description="The last message that the summary covers.")
    covered_message_count: int = 0
    increments_since_full: int = Field(0, description="Changes since it was made from the whole conversation.")
    updated_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TimedValueView(PinnedValue, Validity):
    """A value of core memory that says when it holds."""


class CoreMemorySectionView(Answer):
    """A section of core memory."""

    section: str
    content: dict[str, Any]
    version: int = Field(description="From 1; one more with every change.")
    updated_at: datetime
    validity: list[TimedValueView] = Field(description="Values that say when they hold.")
    pinned: list[PinnedValue] = Field(description="Values that only the user takes away.")


class CoreMemoryRequest(BaseModel):
    """The new content of a section."""

    content: dict[str, Any] = Field(description=f"Its whole content, at most {MAX_SECTION_BYTES} bytes of JSON.")
    expected_version: int | None = Field(
        None,
        ge=0,
        le=2**31 - 1,
        description="Replace it only at this version; 0 = only if there is no such section.",
    )


class RollbackRequest(BaseModel):
    """The version of a section to restore."""

    version: int = Field(ge=1, le=2**31 - 1)


class SettlementRequest(StrictModel):
    """What the user decides."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"accept": True}]})

    accept: bool


class SettledView(BaseModel):
    """A proposal that was settled."""

    accepted: bool
    change: MemoryChangeView | None = Field(description="Of one that was accepted and is not about two memories.")
