"""Lines of an import or an export: a schema for each kind, and errors for lines that fit none.

A line without `kind` is a message. Unknown fields are refused, as everywhere in the API: the value of a misspelt
field would otherwise be lost silently.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json

from services.conversations.values import MAX_IMAGES, Id, Image, Locale, Name, SpaceName, Text, TimeZone
from services.errors import InvalidInput
from services.json_levels import TooDeep
from services.memory.core.items import values_of
from services.platform.setting_values import QUIET_HOURS
from services.store.matching import checked_paths
from services.store.model import LONGEST_TTL, checked_key, content_of, joined
from services.text.secrets import Secrets
from services.time_reference.local_days import time_zone
from services.validation import accepted_fields, no_nul, plain_reason, strict_json

MAX_CONTENT_CHARACTERS = 1_000_000
"""Maximum length of a message in characters. Users' messages are shorter, but answers have no limit here."""
MAX_CORE_MEMORY_CHARACTERS = 4096
"""Maximum characters of a section of core memory, as compact JSON."""
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_AHEAD = timedelta(minutes=5)
"""Tolerated difference between clocks; later times count as future."""
_LONGEST_REASON = 300
_MOST_PROBLEMS = 5


class BadLine(ValueError):
    """A line that cannot be imported; the message gives the reason and names the field."""


def instant(given: datetime, zone: str) -> datetime:
    """Return a time in UTC; one without an offset is local time of the zone. Raises `ValueError` if the time is
    before 1970 or in the future."""
    try:
        moment = (given if given.tzinfo else given.replace(tzinfo=time_zone(zone))).astimezone(UTC)
    except OverflowError:  # within hours of the first or the last year
        moment = given.replace(tzinfo=UTC)
    if moment < _EARLIEST:
        raise ValueError("is before 1970")
    if moment > datetime.now(UTC) + _LATEST_AHEAD:
        raise ValueError("is in the future")
    return moment


def _time(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError("is not a text such as 2026-11-21T10:00:00+08:00")
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not an ISO 8601 time such as 2026-11-21T10:00:00+08:00") from None


def _moment(value: Any) -> datetime:
    time = _time(value)
    if time.tzinfo is None:
        raise ValueError("has no offset, such as +08:00 or Z")
    return instant(time, "UTC")


def _storable(content: Any) -> None:
    """Refuse NUL, which PostgreSQL rejects in JSON, and infinity, which JSON does not have."""
    if isinstance(content, str):
        no_nul(content)
    elif isinstance(content, float) and not math.isfinite(content):
        raise ValueError("holds a number that is too large")
    elif isinstance(content, dict):
        for name, value in content.items():
            _storable(name)
            _storable(value)
    elif isinstance(content, list):
        for value in content:
            _storable(value)


def _section_content(content: dict[str, Any]) -> dict[str, Any]:
    _storable(content)
    size = len(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    if size > MAX_CORE_MEMORY_CHARACTERS:
        raise ValueError(f"has {size} characters as JSON; at most {MAX_CORE_MEMORY_CHARACTERS} are accepted")
    return content


LocalTime = Annotated[datetime, BeforeValidator(_time)]
"""ISO 8601, with an offset or without."""
Moment = Annotated[datetime, BeforeValidator(_moment)]
"""ISO 8601 with an offset."""
_Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(no_nul)]


def _one_line(name: str) -> str:
    """Return a name on one line of visible characters: a line break in it could forge a line of the prompt."""
    return " ".join("".join(each for each in name if each.isprintable() or each.isspace()).split())


_Speaker = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_one_line)]
_Title = Annotated[str, StringConstraints(max_length=500), AfterValidator(no_nul)]
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Content = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARACTERS), AfterValidator(no_nul)
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _OfUser(_Strict):
    user_id: Id


class _Url(_Strict):
    url: Image


class ImagePart(_Strict):
    """An image of a message."""

    type: Literal["image_url"]
    image_url: _Url


class FeedbackPart(_Strict):
    """A user's opinion of a message."""

    rating: Literal["up", "down"]
    comment: Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(no_nul)] | None = None
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(no_nul)]] = Field(
        default_factory=list, max_length=10
    )
    updated_at: Moment | None = None


class MessageLine(_OfUser):
    """A message of a conversation."""

    kind: Literal["message"] = "message"
    session_id: Id
    role: Literal["user", "assistant"]
    content: _Content
    created_at: LocalTime
    """Time of the message; without an offset, local time of `timezone` or else of the user's stored time zone."""
    timezone: TimeZone | None = None
    """Time zone of the message; it is stored for a new user."""
    speaker: _Speaker | None = None
    external_id: _Name | None = None
    """The caller's own id of the message, unique in its session."""
    expert: Name | None = None
    """Expert of a new conversation."""
    space: SpaceName | None = None
    """Space of its conversation; None = no space."""
    completed: bool = True
    retracted: bool = False
    """Whether the message is out of memory."""
    branch: int | None = Field(None, ge=1, le=1_000_000)
    """Branch number in the conversation; None = not on a branch."""
    memory_text: _Content | None = None
    """Text that memory keeps instead of the content."""
    parts: list[ImagePart] = Field(default_factory=list, max_length=MAX_IMAGES)
    feedback: FeedbackPart | None = None
    pinned: bool = False
    """Whether the memory of its exchange is pinned."""

    @model_validator(mode="after")
    def _was_said(self) -> Self:
        if self.role == "user" and not self.content.strip():
            raise PydanticCustomError("blank", "content: is empty")
        if self.timezone or self.created_at.tzinfo:
            try:
                instant(self.created_at, self.timezone or "UTC")
            except ValueError as error:
                raise PydanticCustomError("time", "created_at: {why}", {"why": str(error)}) from None
        return self


class UserLine(_OfUser):
    """A user's settings, stored when the user is created."""

    kind: Literal["user"]
    timezone: TimeZone
    locale: Locale | None = None
    display_name: _Name | None = None
    memory: bool = True
    mood: bool = True
    quiet_hours: Annotated[str, Field(pattern=f"^(?:{QUIET_HOURS})$")] | None = None
    created_at: Moment | None = None


class SessionLine(_OfUser):
    """A conversation's settings, stored when it is created."""

    kind: Literal["session"]
    session_id: Id
    expert: Name | None = None
    space: SpaceName | None = None
    title: _Title = ""
    renamed: bool = False
    pinned: bool = False
    metadata: dict[str, str] = Field(default_factory=dict, max_length=16)
    created_at: Moment


class PinnedValuePart(_Strict):
    """A value of a section that only the user takes away."""

    field: str
    text: str


class CoreMemoryLine(_OfUser):
    """A section of core memory; an existing one stays unchanged."""

    kind: Literal["core_memory"]
    expert: Name | None = None
    space: SpaceName | None = None
    section: Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(no_nul)]
    content: Annotated[dict[str, Any], AfterValidator(_section_content)]
    updated_at: Moment | None = None
    pinned: list[PinnedValuePart] = Field(default_factory=list, max_length=1000)

    @model_validator(mode="after")
    def _pins_what_it_has(self) -> Self:
        held = set(values_of(self.content))
        if missing := [each for each in self.pinned if (each.field, each.text) not in held]:
            why = {"text": missing[0].text[:100], "field": missing[0].field[:100]}
            raise PydanticCustomError("pinned", "pinned: content has no value {text} in {field}", why)
        return self


class SourceLine(_Strict):
    """A message that an episode came from, named by its external id or else by time, role and digest."""

    session_id: Id
    external_id: _Name | None = None
    created_at: Moment | None = None
    role: Literal["user", "assistant"] | None = None
    sha256: _Digest | None = None
    """SHA-256 of the content in UTF-8."""

    @model_validator(mode="after")
    def _names_a_message(self) -> Self:
        if self.external_id is None and None in (self.created_at, self.role, self.sha256):
            raise PydanticCustomError("source", "needs external_id, or created_at with role and sha256")
        return self


class EpisodeLine(_OfUser):
    """An episode that was written as a memory; episodes of turns are made from the messages."""

    kind: Literal["episode"]
    expert: Name | None = None
    space: SpaceName | None = None
    session_id: Id | None = None
    episode_type: Literal["preference", "decision", "context", "outcome"]
    content: Text
    importance: float = Field(ge=0, le=1)
    origin: Literal["user_said", "assistant_said", "tool", "document", "derived"]
    created_at: Moment
    sources: list[SourceLine] = Field(default_factory=list, max_length=1000)
    archived: bool = False
    """Whether it is out of prompts and recall."""
    pinned: bool = False


class StoreItemLine(_OfUser):
    """An item of the store; an existing one stays unchanged."""

    kind: Literal["store_item"]
    space: SpaceName | None = None
    namespace: list[str] = Field(max_length=32)
    key: str
    value: dict[str, Any]
    index: list[str] | None = None
    ttl: float | None = Field(None, gt=0, le=LONGEST_TTL)
    created_at: Moment
    updated_at: Moment

    @model_validator(mode="after")
    def _can_be_stored(self) -> Self:
        try:
            joined(self.namespace)
            checked_key(self.key)
            checked_paths(self.index)
            content_of(self.value)
        except InvalidInput as error:
            raise PydanticCustomError(
                "item", "{field}: {why}", {"field": error.field, "why": error.message}
            ) from None
        return self


class PromiseLine(_OfUser):
    """A promise; an existing one stays unchanged."""

    kind: Literal["promise"]
    expert: Name | None = None
    space: SpaceName | None = None
    session_id: Id | None = None
    text: Annotated[Text, StringConstraints(max_length=1000)]
    said: Annotated[str, StringConstraints(max_length=200), AfterValidator(no_nul)]
    quote: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS), AfterValidator(no_nul)] = ""
    rule: Annotated[str, StringConstraints(max_length=200), AfterValidator(no_nul)] = ""
    timezone: TimeZone
    asked_by: Literal["user", "offer"] = "user"
    event: Literal["read", "changed", "gone"] | None = None
    state: Literal["open", "kept", "cancelled", "missed"]
    due_at: Annotated[AwareDatetime, BeforeValidator(_time)]
    created_at: Moment
    settled_at: Moment | None = None
    source: SourceLine | None = None


class MemoryReference(_Strict):
    """A written memory, named by its time and the digest of its text."""

    created_at: Moment
    sha256: _Digest
    """SHA-256 of the content in UTF-8."""


class ExclusionLine(_OfUser):
    """A message, or a written memory, that a conversation never uses."""

    kind: Literal["exclusion"]
    session_id: Id
    """Conversation that does not use it."""
    message: SourceLine | None = None
    memory: MemoryReference | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.message is None) == (self.memory is None):
            raise PydanticCustomError("exclusion", "needs either message or memory")
        return self


Line = (
    MessageLine
    | UserLine
    | SessionLine
    | CoreMemoryLine
    | EpisodeLine
    | StoreItemLine
    | PromiseLine
    | ExclusionLine
)

_KINDS: dict[str, type[Line]] = {
    "message": MessageLine,
    "user": UserLine,
    "session": SessionLine,
    "core_memory": CoreMemoryLine,
    "episode": EpisodeLine,
    "store_item": StoreItemLine,
    "promise": PromiseLine,
    "exclusion": ExclusionLine,
}


def parse(raw: bytes) -> Line:
    """Read a line. Raises `BadLine` if the line is not JSON in UTF-8, or fits no kind; the message names every
    wrong field."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise BadLine(f"is not UTF-8 (at byte {error.start + 1})") from None
    try:
        strict_json(text)
        value = from_json(text, allow_inf_nan=False)
    except InvalidInput as error:
        raise BadLine(f"{error.field}: {error.message}") from None
    except TooDeep as error:
        raise BadLine(str(error)) from None
    except ValueError:
        raise BadLine("is not JSON") from None
    if not isinstance(value, dict):
        raise BadLine("is not a JSON object")
    kind = value.get("kind", "message")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise BadLine(f"kind: is none of {', '.join(_KINDS)}")
    try:
        return _KINDS[kind].model_validate(value)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
    raise BadLine("; ".join(_problem(problem, _KINDS[kind]) for problem in problems)[:_LONGEST_REASON])


@lru_cache
def _schema_of(kind: type[Line]) -> dict[str, Any]:
    return kind.model_json_schema()


def _problem(error: Mapping[str, Any], kind: type[Line]) -> str:
    name = ".".join(str(part)[:100] for part in error["loc"])
    message = plain_reason(error, accepted_fields(_schema_of(kind), error["loc"]))
    return f"{name}: {message}" if name else message


def remembered_line(line: Line, secrets: Secrets) -> Line:
    """Return a line as memory keeps it: a message with secrets also gets a text without them."""
    if isinstance(line, MessageLine):
        kept = secrets.without(line.content if line.memory_text is None else line.memory_text)
        return line if kept == line.content else line.model_copy(update={"memory_text": kept})
    if isinstance(line, SessionLine):
        return line.model_copy(update={"title": secrets.without(line.title)})
    if isinstance(line, EpisodeLine):
        return line.model_copy(update={"content": secrets.without(line.content)})
    if isinstance(line, PromiseLine):
        texts = {"text": secrets.without(line.text), "quote": secrets.without(line.quote)}
        return line.model_copy(update=texts)
    if isinstance(line, CoreMemoryLine):
        pinned = [each.model_copy(update={"text": secrets.without(each.text)}) for each in line.pinned]
        return line.model_copy(update={"content": secrets.without_in(line.content), "pinned": pinned})
    return line
