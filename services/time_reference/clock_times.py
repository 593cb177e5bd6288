"""Times of day, and durations to the minute, as people write them in English and Chinese."""

import re
from dataclasses import dataclass

from services.time_reference.normalisation import Hours
from services.time_reference.numerals import CHINESE_NUMERAL, ENGLISH_ONES, ENGLISH_TENS, chinese_number

_NOON = 12
_LAST_OF_AFTERNOON = 5
"""Latest hour that belongs to the afternoon when nothing else is said: "at three"."""
_ONES = "|".join(sorted((word for word in ENGLISH_ONES if word != "zero"), key=len, reverse=True))
_TENS = "|".join(ENGLISH_TENS)
_WORDS = rf"(?:(?:{_TENS})(?:[ -](?:{_ONES}))?|{_ONES})"
_NUMBER = rf"(?:\d{{1,3}}|{_WORDS})"
_FIFTHS = r"(?:5|10|15|20|25|five|ten|fifteen|twenty(?:[ -]five)?)"
"""Minutes that are said without their name: ten to four, but not from nine to ten."""
_CLOCK = re.compile(
    rf"(?<![a-z\d])(?:"
    rf"(?P<away>half|(?:a )?quarter|{_NUMBER}(?= minutes?\b)|(?<!from ){_FIFTHS})(?: minutes?)? "
    rf"(?P<way>past|to) (?P<of>\d{{1,2}}|{_ONES})\b"
    rf"|(?:at )?(?P<hour12>\d{{1,2}}|{_ONES})(?:[:.](?P<minute12>[0-5]\d))? ?(?P<half>[ap])\.?m\b\.?"
    r"|(?:at )?(?P<hour24>[01]?\d|2[0-4]):(?P<minute24>[0-5]\d)(?::[0-5]\d)?(?!\d| ?[ap]\.?m\b)"
    r"|at (?P<bare>[01]?\d|2[0-3])(?:h|(?<=\d\d)(?=[0-5]\d))(?P<behind>[0-5]\d)?(?: ?h(?:ou)?rs?)?\b(?![:.]\d)"
    rf"|at (?P<hour>\d{{1,2}}|{_ONES})(?: (?P<minute>thirty|fifteen|forty[ -]five|[0-5]\d))?\b"
    rf"(?![:.]\d| ?[ap]\.?m\b| (?:past|to) (?:\d|{_ONES}))"
    rf"|(?P<sharp>\d{{1,2}}|{_ONES})(?: o'clock| (?=in the (?:morning|afternoon|evening)\b))"
    r"|(?P<named>noon|midday|midnight)\b)"
    rf"|(?P<chinese>{CHINESE_NUMERAL}{{1,3}}) ?(?:点|时(?![间候]))"
    rf"(?P<after>半|差?一刻|三刻|钟|整|差?{CHINESE_NUMERAL}{{1,3}}分?)?"
)
_NAMED = {"noon": 12, "midday": 12, "midnight": 24}
_FIVES = frozenset("一二三四五六七八九")
_QUARTERS = {"半": 30, "一刻": 15, "三刻": 45, "钟": 0, "整": 0}
_FROM_NOW = re.compile(
    rf"(?:in )?(?:about )?(?P<count>half an?|(?:a )?couple(?: of)?|an?|{_NUMBER})(?P<more> and a half)? "
    r"(?P<unit>minute|min|hour|hr)s?"
    r"(?P<also> and a half)?(?: from now)?"
)
_FROM_NOW_CHINESE = re.compile(
    rf"(?:再?过)?(?P<count>半|{CHINESE_NUMERAL}{{1,4}})(?P<more>个半)?个?(?P<unit>小时|钟头|分钟|刻钟|分|(?<=[个半])钟)(?:之?以?后)?"
)
_MINUTES = {**dict.fromkeys(("minute", "min", "分钟", "分"), 1), "刻钟": 15}
_HOUR = 60


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day as a text gives it."""

    hour: int
    minute: int
    place: tuple[int, int] = (0, 0)
    """Place of its words in the text: begin and end."""
    is_exact: bool = True
    """Whether the text says which half of the day it means."""

    def on_clock(self, part: Hours | None, *, either: bool) -> list[tuple[int, int]]:
        """Return the hours and minutes that may be meant; hours from 24 on belong to the next day.

        Args:
            part: Part of the day that is named beside it.
            either: Whether both halves of the day are possible.
        """
        if self.is_exact:
            return [(self.hour, self.minute)]
        if part:
            if self.hour == _NOON and not part[0]:  # 半夜十二点: of this night, or of the one to come
                return [(0, self.minute), (24, self.minute)]
            fitting = [each for each in (self.hour, self.hour + 12, self.hour + 24) if part[0] <= each < part[1]]
            return [(fitting[0] if fitting else self.hour, self.minute)]
        if either:
            return [(self.hour % 12, self.minute), (self.hour % 12 + 12, self.minute)]
        return [(self.hour + 12 if 1 <= self.hour <= _LAST_OF_AFTERNOON else self.hour, self.minute)]


def clock_time(text: str) -> ClockTime | None:
    """Return the first time of day in a text of lower case and simplified characters; None if there is none."""
    for found in _CLOCK.finditer(text):
        hour, minute, is_exact = _read(found)
        if 0 <= hour <= 24 and 0 <= minute < _HOUR:  # noqa: PLR2004 — a day's hours
            return ClockTime(hour, minute, found.span(), is_exact or hour > _NOON or hour == 0)
    return None


def minutes_from_now(text: str) -> int | None:
    """Return the minutes that a text counts from now (in two hours, 半小时后); None if it says anything else."""
    if found := _FROM_NOW.fullmatch(text) or _FROM_NOW_CHINESE.fullmatch(text):
        said, unit = found["count"], _MINUTES.get(found["unit"], _HOUR)
        count = 0.5 if said.startswith(("half", "半")) else 2.0 if "couple" in said else float(_number(said))
        half = 0.5 if found["more"] or found.groupdict().get("also") else 0
        return round((count + half) * unit) if count > 0 else None
    return None


def _read(found: re.Match[str]) -> tuple[int, int, bool]:
    """Return the hour, the minute and whether the half of the day is given."""
    if found["named"]:
        return _NAMED[found["named"]], 0, True
    if found["away"]:
        said = found["away"].removeprefix("a ")
        minutes = {"half": 30, "quarter": 15}.get(said) or _number(said)
        hour = _number(found["of"])
        return (hour, minutes, False) if found["way"] == "past" else ((hour - 1) or _NOON, 60 - minutes, False)
    if found["half"]:
        hour = _number(found["hour12"]) % 12 + (12 if found["half"] == "p" else 0)
        return (hour if _number(found["hour12"]) <= _NOON else -1), int(found["minute12"] or 0), True
    if of_day := found["hour24"] or found["bare"]:  # at 15h, at 15h30, at 0645
        is_exact = bool(found["bare"]) or of_day.startswith("0")
        return int(of_day), int(found["minute24"] or found["behind"] or 0), is_exact
    if found["chinese"]:
        return _read_chinese(chinese_number(found["chinese"]), found["after"] or "整")
    said = found["minute"]
    minutes = 0 if said is None else int(said) if said.isdecimal() else _number(said)
    return _number(found["hour"] or found["sharp"]), minutes, False


def _read_chinese(hour: int, after: str) -> tuple[int, int, bool]:
    """Return the same of an hour and what stands behind it: 半, 十分, 差一刻."""
    said = after.removesuffix("分").removeprefix("差")
    said = said.lstrip("零〇") if len(said) > 1 else said
    minutes = _QUARTERS.get(said, chinese_number(said) if said else -1)
    if after.startswith("差"):
        return (hour - 1) or _NOON, _HOUR - minutes, False
    # 三点三 is a quarter past three in Cantonese; as minutes it would be 三点零三分.
    return hour, minutes * 5 if after in _FIVES else minutes, False


def _number(said: str) -> int:
    if said in {"a", "an"}:
        return 1
    if said[0].isascii() and said[0].isalpha():
        return sum(ENGLISH_TENS.get(word, ENGLISH_ONES.get(word, 0)) for word in re.split(r"[ -]", said))
    return chinese_number(said)
