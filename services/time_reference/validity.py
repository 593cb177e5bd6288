"""When a statement holds: "until June", "since last year", "used to", 到六月为止, 从去年起, 以前.

The days are read by `parse`; this module knows the words around them, and marks such as "(until 2026-06)".
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from services.time_reference.parse import parse
from services.time_reference.ranges import TimeRange
from services.time_reference.upcoming import upcoming

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
_MARK = re.compile(
    r"\s{0,8}[(（](?:(?P<formerly>formerly|以前)"
    r"|(?:until |到(?=.{0,20}为止))(?P<until>[\d-]+)(?:为止)?"
    r"|(?:since |from |(?=.{0,20}起))(?P<since>[\d-]+)起?"
    r"|(?P<first>[\d-]+)(?: to |至)(?P<last>[\d-]+))[)）]\s*$"
)
_AHEAD = frozenset(
    ["from", "starting", "starting from", "starting in", "starting on", "beginning", "beginning in"]
)
"""Words of what is to come, unless the statement is in the past."""
_BETWEEN_CHINESE = re.compile(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")


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


@dataclass(frozen=True)
class TimedText:
    """A text, and the words of it that say when it holds."""

    text: str
    """Without these words."""
    words: str
    """Empty where there are none."""
    validity: Validity = ALWAYS


def timed(text: str, now: datetime) -> TimedText:
    """Read when a text holds, said at `now`, the user's local time; marks are read as well."""
    if marked := _of_mark(text):
        return marked
    if not _MAY_BE_TIMED.search(text):
        return TimedText(text, "")
    cues = [cue for each in parse(text, now) if (cue := _Cue.of(each, text, now)) is not None]
    starts = [cue for cue in cues if cue.validity.valid_from]
    ends = [cue for cue in cues if cue.validity.valid_to]
    formerly = _FORMERLY.search(text)
    if max(len(starts), len(ends)) > 1 or not (cues or formerly):  # of several things, or of none
        return TimedText(text, "")
    places = [(cue.begin, cue.stop) for cue in cues]
    if formerly:
        places = sorted([*places, (formerly.start(), formerly.end())])
    validity = Validity(
        starts[0].validity.valid_from if starts else None,
        ends[0].validity.valid_to if ends else None,
        ended=formerly is not None,
    )
    words = " ".join(text[begin:stop].strip(" ,，") for begin, stop in places)
    return TimedText(_without(text, places), words, validity)


@dataclass(frozen=True)
class _Cue:
    """A day with the word that makes it a beginning or an end."""

    begin: int
    stop: int
    validity: Validity

    @classmethod
    def of(cls, found: TimeRange, text: str, now: datetime) -> "_Cue | None":
        """Return the cue; None where a day is named without such a word."""
        if _FROM_TO.match(found.text) and found.start < found.end:
            return cls(found.begin, found.stop, Validity(found.start, found.end))
        return cls._end(found, text, now) or cls._beginning(found, text, now)

    @classmethod
    def _end(cls, found: TimeRange, text: str, now: datetime) -> "_Cue | None":
        before, after = text[: found.begin], text[found.stop :]
        until, closing = _UNTIL.search(before), _UNTIL_HERE.match(after)
        before_it = None if until or _TO_COME.search(text) else _UNTIL_BEFORE.match(after)
        if before_it:  # 去年之前一直…
            day = found.start - timedelta(days=1)
            return cls(found.begin, found.stop + before_it.end(), Validity(valid_to=day))
        # 到 alone is a way to somewhere, unless the clause closes with it.
        if until is None or (_BARE_UNTIL.fullmatch(until.group()) and not closing and after.strip(" ,，.。!！")):
            return None
        _, end = (found.start, found.end) if _OVER.search(before) else upcoming(found, now)
        stop = found.stop + (closing.end() if closing else 0)
        return cls(until.start(), stop, Validity(valid_to=end))

    @classmethod
    def _beginning(cls, found: TimeRange, text: str, now: datetime) -> "_Cue | None":
        before, after = text[: found.begin], text[found.stop :]
        onwards = _ONWARDS.match(after)
        own, since, begun = _BEGINS.match(found.text), _SINCE.search(before), _FROM.search(before)
        chinese_onwards = _ONWARDS_CHINESE.match(after)
        read = (own, since, begun, chinese_onwards)
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
        start = upcoming(found, now)[0] if looks_ahead else found.start
        opened = next((each for each in (since, begun) if each and own is None), None)
        opens = opened.start() if opened else found.begin
        stop = found.stop + (onwards.end() if onwards else 0)
        return cls(opens, stop, Validity(valid_from=start))


def _of_mark(text: str) -> TimedText | None:
    found = _MARK.search(text)
    if found is None:
        return None
    first, last = found["since"] or found["first"], found["until"] or found["last"]
    try:
        validity = Validity(
            _first_day(first) if first else None,
            _last_day(last) if last else None,
            ended=bool(found["formerly"]),
        )
    except ValueError:
        return None
    return TimedText(text[: found.start()], found.group().strip(" ()（）"), validity)


def _first_day(name: str) -> date:
    return date.fromisoformat({4: f"{name}-01-01", 7: f"{name}-01"}.get(len(name), name))


def _last_day(name: str) -> date:
    first = _first_day(name)
    if len(name) == len("2026"):
        return first.replace(month=12, day=31)
    return first.replace(day=monthrange(first.year, first.month)[1]) if len(name) == len("2026-06") else first


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    for begin, stop in reversed(places):
        before, after = text[:begin].rstrip(" ,，"), text[stop:].lstrip(" ,，")
        text = f"{before} {after}" if before and after[:1].isalnum() else f"{before}{after}"
    return _BETWEEN_CHINESE.sub("", text)
