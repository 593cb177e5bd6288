"""Promises as a calendar in the format of RFC 5545, which other programs read."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import LiteralString

from services.promises.promise import Promise
from services.time_reference.occasions import next_moment

_FURTHER = 26
"""Moments of what recurs that are listed."""
_OCTETS = 75
_TIME: LiteralString = "%Y%m%dT%H%M%SZ"


def calendar_of(promises: Sequence[Promise]) -> str:
    """Return the open ones as a calendar; of what recurs, the next half year or so by the week."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Anamnesis//Promises//EN"]
    for each in promises:
        if each.state in {"open", "due"}:
            lines += _event(each)
    return "".join(f"{folded}\r\n" for line in [*lines, "END:VCALENDAR"] for folded in _folded(line))


def _event(promise: Promise) -> Iterator[str]:
    yield from (
        "BEGIN:VEVENT",
        f"UID:{promise.id}@anamnesis",
        f"DTSTAMP:{promise.created_at.astimezone(UTC):{_TIME}}",
    )
    yield f"DTSTART:{promise.when.astimezone(UTC):{_TIME}}"
    if further := list(_further(promise)):
        yield f"RDATE:{','.join(f'{each:{_TIME}}' for each in further)}"
    text = promise.text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")
    yield from (f"SUMMARY:{text}", "BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:PT0S", f"DESCRIPTION:{text}")
    yield from ("END:VALARM", "END:VEVENT")


def _further(promise: Promise) -> Iterator[datetime]:
    moment: datetime | None = promise.when.astimezone(UTC)
    for _ in range(_FURTHER if promise.repeats else 0):
        moment = next_moment(promise.said, moment, promise.timezone) if moment else None
        if moment:
            yield moment


def _folded(line: str) -> Iterator[str]:
    """Yield a line in pieces of at most 75 octets, the further ones after a blank."""
    piece = ""
    for character in line:
        if len(piece.encode()) + len(character.encode()) > _OCTETS:
            yield piece
            piece = " "
        piece += character
    yield piece
