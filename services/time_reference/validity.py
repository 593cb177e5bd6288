"""When a statement holds, by the mark at its end: (until 2026-06), (2011 to 2014), (formerly), （2025起）."""

import re
from dataclasses import dataclass
from datetime import date, datetime

from services.time_reference.parse import parse

_MARK = re.compile(r"[(（]([^()（）]{1,60})[)）]\W{0,8}$")
_UNTIL = re.compile(r"(?:until|till) |[到至].*止$", re.IGNORECASE)
_SINCE = re.compile(r"(?:since|from) (?!.* to )|(?:起|以来)$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<=.)(?: to |[到至–-])(?=.)", re.IGNORECASE)
_FORMERLY = re.compile(r"formerly|previously|以前|曾经?|过去", re.IGNORECASE)


@dataclass(frozen=True)
class Validity:
    """When something holds: local days, both inclusive; None = open, or not known."""

    valid_from: date | None = None
    valid_to: date | None = None
    ended: bool = False
    """Whether it is over, though it is not known since when."""

    def is_over(self, day: date) -> bool:
        """Whether it had ended before a day."""
        return self.ended or (self.valid_to is not None and self.valid_to < day)


ALWAYS = Validity()


def timed(text: str, now: datetime) -> Validity:
    """Read when a text holds, said at `now`, the user's local time."""
    mark = _MARK.search(text)
    if mark is None:
        return ALWAYS
    said = mark[1].strip()
    if _FORMERLY.fullmatch(said):
        return Validity(ended=True)
    days = parse(said, now)
    if not days:
        return ALWAYS
    first, last = days[0].start, days[-1].end
    if _UNTIL.match(said):
        return Validity(valid_to=last)
    if _SINCE.match(said) or _SINCE.search(said):
        return Validity(valid_from=first)
    return Validity(first, last) if _BETWEEN.search(said) and first < last else ALWAYS
