"""The two times of memory: `as_of`, the moment whose memory is shown, and the days on which something holds."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, Field

from services.conversations.values import Moment
from services.time_reference.parse import timed


def _past(moment: datetime | None) -> datetime | None:
    if moment is not None and moment > datetime.now(UTC):
        raise ValueError("is in the future")
    return moment


_MEANING = (
    "Show what memory knew at this moment, with its time zone (2026-06-30T12:00:00Z). What was removed for good "
    "is not shown; unset = what it knows now."
)

PastMoment = Annotated[Moment | None, AfterValidator(_past), Field(description=_MEANING)]
"""A field of a request."""
AsOf = Annotated[Moment | None, AfterValidator(_past), Query(description=_MEANING)]
"""A parameter of a path."""


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
    """The days on which a text holds, as it was written at a moment."""
    found = timed(text, at)
    over = found.is_over(datetime.now(at.tzinfo).date())
    return {"valid_from": found.valid_from, "valid_to": found.valid_to, "is_over": over}
