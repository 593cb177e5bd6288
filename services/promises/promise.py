"""A promise: what the assistant is to say by itself, when, and in which words the user asked for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from services.errors import InvalidInput
from services.text.language import sentences
from services.time_reference.local_days import time_zone
from services.time_reference.occasions import Occasion, read_occasion
from services.time_reference.recurring import BadOccasion

LONGEST_TEXT = 1_000
"""Characters of what is promised."""
PromiseState = Literal["open", "due", "kept", "cancelled", "missed"]
"""It waits; its time has come; it was kept; it was cancelled; its time was over before it could be kept."""
AskedBy = Literal["user", "offer"]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Something that the assistant says by itself at its time."""

    id: UUID
    text: str
    when: datetime
    """Its moment, or its next one, with the offset of its time zone."""
    state: PromiseState
    said: str
    """When, in the words in which it was said."""
    repeats: bool
    timezone: str
    """Time zone of its times."""
    quote: str
    """The user's words for it; empty where no message asked for it."""
    asked_by: AskedBy
    """The user, or an offer of the assistant that the user accepted."""
    expert: str
    space: str | None
    conversation_id: UUID | None
    """Where it is kept; null = in the user's newest conversation."""
    message_id: UUID | None
    """The message that asked for it."""
    created_at: datetime
    settled_at: datetime | None
    """When it was kept last, cancelled or missed."""
    kept_in: UUID | None
    """The message in which it was kept last."""


def occasion_of(said: str, now: datetime, timezone: str) -> Occasion:
    """Read when something is promised for. Raises `InvalidInput` if `when` cannot be read, or lies in the past."""
    try:
        return read_occasion(said, now, timezone)
    except BadOccasion as error:
        raise InvalidInput("when", str(error)) from error


def promise_of(row: Mapping[str, Any], now: datetime) -> Promise | None:
    """Return the promise of a row; None where the words that asked for it are no longer remembered."""
    if not stands(row):
        return None
    due = row["state"] == "open" and row["due_at"] <= now
    return Promise(
        id=row["id"],
        text=row["text"],
        when=row["due_at"].astimezone(time_zone(row["timezone"])),
        state="due" if due else row["state"],
        said=row["said"],
        repeats=bool(row["rule"]),
        timezone=row["timezone"],
        quote=row["quote"],
        asked_by=row["asked_by"],
        expert=row["expert"],
        space=row["space"],
        conversation_id=row["conversation_id"],
        message_id=row["source_message_id"],
        created_at=row["created_at"],
        settled_at=row["settled_at"],
        kept_in=row["kept_in"],
    )


def stands(row: Mapping[str, Any]) -> bool:
    """Whether the message that asked for a promise still says so: it was neither forgotten nor put aside."""
    if row["source_message_id"] is None:
        return True
    if row["source_goes"]:
        return False
    kept = row["source_text"]
    return kept is None or row["quote"] in kept


def quote_of(message: str, said: str) -> str:
    """Return the sentence of a message that says when, or all of it where none does."""
    found = [each.text for each in sentences(message) if said.casefold() in each.text.casefold()]
    return (found[0] if len(found) == 1 and said else message).strip()
