"""Types that many requests and answers share: limits, pages of records, and the two times of memory.

The two times are `as_of`, the moment whose memory is shown, and the days on which something holds.
"""

from dataclasses import dataclass, is_dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.conversations.values import Moment
from services.health import Dependency
from services.time_reference.parse import timed
from state.budget import BudgetReport, RequestBudget
from state.memory import MemoryChange
from state.prompt import Source

Record = TypeVar("Record")
_SHOWN = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)
_WHERE_GIVEN = ConfigDict(use_attribute_docstrings=True)
"""Configuration of a dictionary that may lack some of its keys."""

MAX_BODY_BYTES = 70 * 1024 * 1024
MAX_IMPORT_BYTES = 1024 * 1024 * 1024
MAX_PAGE = 200


class StrictModel(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """An answer that holds records of services; the docstrings of their attributes describe the fields."""

    model_config = _SHOWN


def answered(record: type[Record]) -> type[Record]:
    """Return a record of a service as the model of an answer; docstrings of its attributes describe the fields."""
    shown = _SHOWN if is_dataclass(record) else _WHERE_GIVEN
    setattr(record, "__pydantic_config__", shown)  # noqa: B010 — mypy knows no such attribute
    return record


for _record in (BudgetReport, MemoryChange, RequestBudget, Source):
    answered(_record)


class Page(Answer, Generic[Record]):
    """A page of a list. `next` is the `after` of the next page; null = there is no other."""

    # Pydantic would read the source for docstrings for each of some forty lists: a quarter of the start.
    model_config = ConfigDict(use_attribute_docstrings=False)

    items: list[Record]
    next: str | None = None

    def __class_getitem__(cls, record: Any) -> Any:
        """Return the page of these records; docstrings describe their fields."""
        return super().__class_getitem__(
            answered(record) if isinstance(record, type) and is_dataclass(record) else record
        )

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Name a list after its records."""
        return f"{params[0].__name__}Page"


class ErasureView(BaseModel):
    """Counts of what was removed for a user, by store and kind."""

    user_id: str
    removed: dict[str, dict[str, int]]
    pending: list[str] = Field(description="Stores that did not answer; a background job goes on trying.")


class ErasedConversationView(BaseModel):
    """Counts of what was removed with a conversation."""

    conversation_id: UUID
    keep_memories: bool
    removed: dict[str, int] = Field(
        description="How many of each kind; `memories` were written down, `core_memory_sections` were changed."
    )
    pending: list[str] = Field(description="Stores that did not answer; a background job goes on trying.")


class TicketView(BaseModel):
    """A ticket with which a browser opens a WebSocket."""

    ticket: str
    expires_in_s: int


class ReadinessView(Answer):
    """Whether the service can answer, and the state of its dependencies."""

    state: Literal["ok", "degraded", "busy", "down"] = Field(
        description="`busy`: the process runs its maximum of turns and starts no other for now."
    )
    dependencies: list[Dependency] = Field(description="Empty for callers who may not see them.")


def _past(moment: datetime | None) -> datetime | None:
    if moment is not None and moment > datetime.now(UTC):
        raise ValueError("is in the future")
    return moment


_MEANING = (
    "Show what memory knew at this moment, with its time zone (2026-06-30T12:00:00Z). What was removed for good "
    "is not shown; unset = what it knows now."
)

PastMoment = Annotated[Moment | None, AfterValidator(_past), Field(description=_MEANING)]
"""Moment in a field of a request."""
AsOf = Annotated[Moment | None, AfterValidator(_past), Query(description=_MEANING)]
"""Moment in a query."""


@dataclass(frozen=True, kw_only=True)
class Validity:
    """The days on which something holds, as far as its text says."""

    valid_from: date | None
    """The first day; null = not said."""
    valid_to: date | None
    """The last day; null = not said, or it goes on."""
    is_over: bool
    """Whether it no longer holds today."""


def validity_fields(text: str, at: datetime) -> dict[str, Any]:
    """Return the days on which a text holds that was written at a moment."""
    found = timed(text, at)
    over = found.is_over(datetime.now(at.tzinfo).date())
    return {"valid_from": found.valid_from, "valid_to": found.valid_to, "is_over": over}
