"""Requests and answers about visits, days and users."""

from datetime import date, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from api.schemas import StrictModel
from services.conversations.values import Locale, TimeZone, no_nul

Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(no_nul)
]


class DailySummaryView(BaseModel):
    """What a user talked about with an expert on one local day."""

    date: date
    timezone: str = Field(description="In which it is that day.")
    expert: str
    summary: str
    key_topics: list[str]
    session_count: int = Field(description="Visits that began on it.")
    message_count: int
    stale: bool | None = Field(
        description="Whether something was said since that it does not cover; null with `as_of`."
    )
    updated_at: datetime


class DailySummaryPage(BaseModel):
    """Days, newest first. `next` is the `after` of the next page, or null."""

    items: list[DailySummaryView]
    pending: list[date] = Field(
        description="Days whose summary is missing or stale, and is being made in the background."
    )
    next: str | None


class UserRequest(StrictModel):
    """A change of a user; fields that are not given stay."""

    timezone: TimeZone | None = Field(None, description="IANA name or offset: in which their days are.")
    locale: Locale | None = Field(None, description="BCP 47 tag such as zh-CN; null = none.")
    display_name: Name | None = Field(None, description="1 to 200 characters; null = none.")
    memory: bool = Field(
        True,
        description="false: later turns neither read memory nor add to it; what is remembered, and the "
        "conversations, stay.",
    )

    @model_validator(mode="after")
    def _zone_is_one(self) -> "UserRequest":
        if "timezone" in self.model_fields_set and self.timezone is None:
            raise ValueError("timezone: a user always has one")
        return self
