"""Requests and answers about visits, days and users."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from services.conversations.values import Locale, TimeZone, no_nul

Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(no_nul)
]


class VisitView(BaseModel):
    """A stretch of activity in a conversation; its messages are the conversation's of that time."""

    id: UUID
    conversation_id: UUID
    session_id: str
    expert: str
    started_at: datetime
    last_active_at: datetime
    ended_at: datetime | None = Field(description="null = it goes on.")
    end_reason: Literal["closed", "idle"] | None
    message_count: int = Field(description="Complete messages.")
    summary: str | None = Field(description="null = it goes on, is too short for one, or waits for it.")
    key_topics: list[str]
    summary_generated_at: datetime | None


class VisitPage(BaseModel):
    """Visits, newest first. `next` is the `after` of the next page, or null."""

    items: list[VisitView]
    next: str | None


class ClosedView(BaseModel):
    """What closing a conversation's visit did."""

    closed: bool = Field(description="False where no visit was open.")
    visit: VisitView | None = Field(description="The conversation's newest visit.")


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


class UserView(BaseModel):
    """A user of the tenant."""

    user_id: str
    timezone: str
    locale: str | None
    display_name: str | None
    memory: bool = Field(description="Whether turns read memory and add to it.")
    created_at: datetime


class ListedUserView(UserView):
    """A user, and how much there is of them."""

    conversations: int
    messages: int = Field(description="Complete ones.")
    episodes: int = Field(description="Those that hold.")
    last_active_at: datetime | None


class UserPage(BaseModel):
    """Users, by name. `next` is the `after` of the next page, or null."""

    items: list[ListedUserView]
    next: str | None


class UserRequest(BaseModel):
    """A change of a user; fields that are not given stay."""

    model_config = ConfigDict(extra="forbid")

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
