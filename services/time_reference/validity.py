"""When a statement holds: "until June", "since last year", "used to", 到六月为止, 从去年起, 以前.

The days are read by `parse`; this module knows the words around them.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from services.time_reference.parse import parse
from services.time_reference.ranges import TimeRange

_ELSEWHERE = timedelta(days=565)
"""A day so far away is neither a whole number of weeks nor of months nor of years away, and in another year."""
_RELATIVE = re.compile(r"\b(?:next|last|this|coming|past)\b|[明去前今后]年", re.IGNORECASE)
_PAST = re.compile(r"\b(?:last|ago|yesterday|past|earlier|previous|since)\b|[昨前上去]|以来|刚")
_WEEK = timedelta(days=7)


def is_calendar_date(found: TimeRange, text: str, now: datetime) -> bool:
    """Whether it is the same day or month in every year (May 3, 5月3号), named without a relative word."""
    elsewhere = {(each.begin, each.stop): each for each in parse(text, now - _ELSEWHERE)}
    other = elsewhere.get((found.begin, found.stop))
    same = other is not None and (other.start.month, other.start.day) == (found.start.month, found.start.day)
    return same and not _RELATIVE.search(found.text)


def upcoming(found: TimeRange, now: datetime) -> tuple[date, date]:
    """The days that are meant if they are yet to come: a past day of the year or the week is the next one.

    Args:
        found: as read, which of one of many is the latest that has begun.
        now: when it was said, in the user's local time.
    """
    start, end, today = found.start, found.end, now.date()
    if end >= today or _PAST.search(found.text) or re.search(r"\d{4}", found.text):
        return start, end
    if is_calendar_date(found, " " * found.begin + found.text, now):
        try:
            return start.replace(year=start.year + 1), end.replace(year=end.year + 1)
        except ValueError:  # February 29
            return start, end
    while end < today:
        start, end = start + _WEEK, end + _WEEK
    return start, end


_MAY_BE_TIMED = re.compile(
    r"\b(?:until|till?|through|since|from|starting|beginning|as of|used to|formerly|previously)\b"
    r"|[到至止起从自]|开始|以来|以前|曾|过去|原先|之前",
    re.IGNORECASE,
)
"""What a text without a validity rarely has."""
_UNTIL = re.compile(
    r"(?:[,，]\s*)?(?:\b(?:(?:up )?until|till?|through)|直到|一直到|截止到?|截至|到|至)\s*$", re.IGNORECASE
)
_UNTIL_HERE = re.compile(r"\s{0,8}(?:为止|之前|前|止|结束|到期)")
_UNTIL_BEFORE = re.compile(r"(?:[之以]前|前)(?=都|一直|还是?|我|咱|[,，])|[之以]前$")
_BARE_UNTIL = re.compile(r"(?:到|至)\s*$")
_SINCE = re.compile(r"(?:[,，]\s*)?(?:\bsince|自从|自|从|打)\s*$", re.IGNORECASE)
_FROM = re.compile(
    r"(?:[,，]\s*)?\b(?:starting(?: from| in| on)?|beginning(?: from| in| on)?|as of|from)\s*$", re.IGNORECASE
)
_BEGINS = re.compile(r"(?:since|from|自从|自|从|打)", re.IGNORECASE)
_ONWARDS = re.compile(
    r"\s{0,8}(?:\bonwards?\b|\bon\b(?!\s+(?:the|a|my))|以来|起就|起|开始就?|之后就?|以后就?)", re.IGNORECASE
)
_EVER_SINCE = re.compile(r"(?:[我咱]们?)?(?:就|便|一直)")
_ONWARDS_CHINESE = re.compile(r"以来|起(?![床来身飞码初个诉草步])|开始")
_FROM_TO = re.compile(
    r"(?:from\s.{1,80}\s(?:to|until|till?)\s|(?:从|自)?[\d一二三四五六七八九十去前今明].{0,80}[到至])",
    re.IGNORECASE,
)
_FORMERLY = re.compile(
    r"(?<!\bam )(?<!\bis )(?<!\bare )(?<!'m )(?<!'re )(?<!\bget )(?<!\bgot )(?<!\bbe )\bused to (?=[a-z])"
    r"|\b(?:formerly|previously|in the past)\b\s*"
    r"|[,，]以前(?=$|[,，])|(?<=[我们家户])(?:以前|曾经?|过去|从前|原先|之前)|^(?:以前|曾经?|过去|从前|原先|之前)(?=[我咱])",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:was|were|did|had|used to|formerly|lived|went|taught|\w{3,}ed)\b|[了过]|以前|曾|当时|那时|从前",
    re.IGNORECASE,
)
_TO_COME = re.compile(r"\b(?:will|going to|gonna)\b|'ll\b|要|会|将|打算|准备|计划", re.IGNORECASE)
_AHEAD = frozenset(
    ["from", "starting", "starting from", "starting in", "starting on", "beginning", "beginning in"]
)
"""Words of what is to come, unless the statement is in the past."""


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
    if not _MAY_BE_TIMED.search(text):
        return ALWAYS
    cues = [cue for each in parse(text, now) if (cue := _cue_of(each, text, now)) is not None]
    starts = [cue.valid_from for cue in cues if cue.valid_from]
    ends = [cue.valid_to for cue in cues if cue.valid_to]
    if max(len(starts), len(ends)) > 1:  # of several things
        return ALWAYS
    return Validity(
        starts[0] if starts else None, ends[0] if ends else None, ended=_FORMERLY.search(text) is not None
    )


def _cue_of(found: TimeRange, text: str, now: datetime) -> Validity | None:
    """Return what a day says with the words around it; None where it is named without such words."""
    if _FROM_TO.match(found.text) and found.start < found.end:
        return Validity(found.start, found.end)
    return _end(found, text, now) or _beginning(found, text, now)


def _end(found: TimeRange, text: str, now: datetime) -> Validity | None:
    before, after = text[: found.begin], text[found.stop :]
    until, closing = _UNTIL.search(before), _UNTIL_HERE.match(after)
    if not until and not _TO_COME.search(text) and _UNTIL_BEFORE.match(after):  # 去年之前一直…
        return Validity(valid_to=found.start - timedelta(days=1))
    # 到 alone is a way to somewhere, unless the clause closes with it.
    if until is None or (_BARE_UNTIL.fullmatch(until.group()) and not closing and after.strip(" ,，.。!！")):
        return None
    return Validity(valid_to=found.end if _OVER.search(before) else upcoming(found, now)[1])


def _beginning(found: TimeRange, text: str, now: datetime) -> Validity | None:
    before, after = text[: found.begin], text[found.stop :]
    onwards = _ONWARDS.match(after)
    read = (_BEGINS.match(found.text), _SINCE.search(before), _FROM.search(before), _ONWARDS_CHINESE.match(after))
    words = next((each.group().strip(" ,，").casefold() for each in read if each), None)
    if words is None or found.start == now.date():  # "from now on" says how, and not when
        return None
    is_certain = (
        words.isascii()
        or words == "自从"
        or onwards
        or found.text.endswith(("以来", "起", "开始"))
        or _EVER_SINCE.match(after) is not None
    )
    if not is_certain:  # 从北京, 从六月
        return None
    looks_ahead = bool(_TO_COME.search(text)) or (words in _AHEAD and not _OVER.search(text))
    return Validity(valid_from=upcoming(found, now)[0] if looks_ahead else found.start)
