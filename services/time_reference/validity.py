"""When a statement holds: "until June", "since last year", "used to", 到六月为止, 从去年起, 以前.

The days are read by `parse`; this module knows the words around them, and writes what it read as a mark, "(until
2026-06)", that says the same on any other day.
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from services.text.language import language_of
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
_A_YEAR = re.compile(
    r"(?:^|\s|\b)(?:last year|next year|this year|\d{4})$|(?:[去前明后今]|\d{4})年(?:以来|起|开始)?$"
)
_BETWEEN_CHINESE = re.compile(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")


@dataclass(frozen=True)
class Validity:
    """When something holds: local days, both inclusive; None = open, or not known."""

    valid_from: date | None = None
    valid_to: date | None = None
    ended: bool = False
    """Whether it is over, though it is not known since when."""
    in_years: bool = False
    """Whether it was said in years, so that its first and last months say nothing."""

    def holds_on(self, day: date) -> bool:
        """Whether it holds on a day, as far as is known."""
        return not self.is_over(day) and not self.begins_after(day)

    def is_over(self, day: date) -> bool:
        """Whether it had ended before a day."""
        return self.ended or (self.valid_to is not None and self.valid_to < day)

    def begins_after(self, day: date) -> bool:
        """Whether it begins only after a day."""
        return self.valid_from is not None and self.valid_from > day


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
        in_years=bool(cues) and all(cue.validity.in_years for cue in cues),
    )
    words = " ".join(text[begin:stop].strip(" ,，") for begin, stop in places)
    return TimedText(_without(text, places), words, validity)


def with_mark(text: str, validity: Validity, today: date) -> str:
    """Append to a text when it holds: "works at Acme (until 2026-06)"; a whole month or year by its name."""
    first, last = validity.valid_from, validity.valid_to
    begin = _name(first, first.day == 1, in_years=validity.in_years) if first else ""
    end = _name(last, _is_last_of_month(last), in_years=validity.in_years) if last else ""
    chinese = language_of([text]) == "zh"
    if first and not last and validity.ended:
        mark = "以前" if chinese else "formerly"
    elif first and last:
        mark = f"{begin}至{end}" if chinese else f"{begin} to {end}"
    elif last:
        mark = f"到{end}为止" if chinese else f"until {end}"
    elif first:
        mark = f"{begin}起" if chinese else f"{'from' if first > today else 'since'} {begin}"
    elif validity.ended:
        mark = "以前" if chinese else "formerly"
    else:
        return text
    return f"{text}（{mark}）" if chinese else f"{text} ({mark})"


def of_mark(text: str) -> TimedText:
    """Read the mark at the end of a text, and nothing else."""
    return _of_mark(text) or TimedText(text, "")


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
            in_years = (found.start.month, found.start.day, found.end.month, found.end.day) == (1, 1, 12, 31)
            return cls(found.begin, found.stop, Validity(found.start, found.end, in_years=in_years))
        return cls._end(found, text, now) or cls._beginning(found, text, now)

    @classmethod
    def _end(cls, found: TimeRange, text: str, now: datetime) -> "_Cue | None":
        before, after = text[: found.begin], text[found.stop :]
        until, closing = _UNTIL.search(before), _UNTIL_HERE.match(after)
        before_it = None if until or _TO_COME.search(text) else _UNTIL_BEFORE.match(after)
        if before_it:  # 去年之前一直…
            day = found.start - timedelta(days=1)
            return cls(found.begin, found.stop + before_it.end(), Validity(valid_to=day, in_years=_is_year(found)))
        # 到 alone is a way to somewhere, unless the clause closes with it.
        if until is None or (_BARE_UNTIL.fullmatch(until.group()) and not closing and after.strip(" ,，.。!！")):
            return None
        _, end = (found.start, found.end) if _OVER.search(before) else upcoming(found, now)
        stop = found.stop + (closing.end() if closing else 0)
        return cls(until.start(), stop, Validity(valid_to=end, in_years=_is_year(found)))

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
        return cls(opens, stop, Validity(valid_from=start, in_years=_is_year(found)))


def _is_year(found: TimeRange) -> bool:
    """Whether it names a whole year, or the time since one began."""
    return _A_YEAR.search(found.text) is not None and (found.start.month, found.start.day) == (1, 1)


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
            in_years=all(len(name) == len("2026") for name in (first, last) if name),
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


def _name(day: date, is_month: bool, *, in_years: bool) -> str:
    if in_years:
        return f"{day:%Y}"
    return f"{day:%Y-%m}" if is_month else day.isoformat()


def _is_last_of_month(day: date) -> bool:
    return day.day == monthrange(day.year, day.month)[1]


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    for begin, stop in reversed(places):
        before, after = text[:begin].rstrip(" ,，"), text[stop:].lstrip(" ,，")
        text = f"{before} {after}" if before and after[:1].isalnum() else f"{before}{after}"
    return _BETWEEN_CHINESE.sub("", text)
