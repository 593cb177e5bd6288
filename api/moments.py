"""The parameter `as_of`: a moment in the past whose memory is shown."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, AwareDatetime, Field


def _past(moment: datetime | None) -> datetime | None:
    if moment is not None and moment > datetime.now(UTC):
        raise ValueError("is in the future")
    return moment


_MEANING = (
    "Show what memory knew at this moment, with its time zone (2026-06-30T12:00:00Z). What was removed for good "
    "is not shown; unset = what it knows now."
)

PastMoment = Annotated[AwareDatetime | None, AfterValidator(_past), Field(description=_MEANING)]
"""A field of a request."""
AsOf = Annotated[AwareDatetime | None, AfterValidator(_past), Query(description=_MEANING)]
"""A parameter of a path."""
