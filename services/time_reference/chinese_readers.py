"""Readers of pieces of Chinese text about time: beginnings of phrases, and the steps that follow them."""

import re
from collections.abc import Callable
from datetime import date

from services.time_reference import lunar, steps
from services.time_reference.numerals import CHINESE_DIGITS, chinese_number
from services.time_reference.phrases import (
    FEW,
    ONE_DAY,
    TWO_FIGURES,
    DayAhead,
    Phrase,
    Span,
    Step,
    Unit,
    about,
    full_year,
    moved,
    one_of,
    period,
)
from services.time_reference.steps import Part

_UNITS = {
    **{"天": Unit.DAY, "日": Unit.DAY, "周": Unit.WEEK, "星期": Unit.WEEK, "礼拜": Unit.WEEK, "月": Unit.MONTH},
    **{"季度": Unit.QUARTER, "季": Unit.QUARTER, "半年": Unit.HALF, "年": Unit.YEAR, "年度": Unit.YEAR},
}
_PARTS: dict[str, Part] = {
    **dict.fromkeys(("初", "上旬", "前期", "早期", "初期"), "early"),
    **dict.fromkeys(("中", "中旬", "中期"), "middle"),
    **dict.fromkeys(("底", "末", "下旬", "后期", "末期"), "late"),
}
_NARROW = frozenset({"初", "底", "末"})
_WEEKDAYS = {name: value for value, name in enumerate("一二三四五六日")} | {"天": 6}
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_AWAY = {
    **dict.fromkeys("今本当", 0),
    **dict.fromkeys("昨寻琴去旧上", -1),
    **dict.fromkeys("明听来下", 1),
    **{"前": -2, "后": 2},
}
"""Distance, in units from the current one, of words for days and years; 寻日 and 琴日 are Cantonese."""
_BEFORE_THE_REPUBLIC = 1911


def _year(match: re.Match[str], today: date) -> Phrase | None:
    digits = match["year"].rstrip("年度 ").removeprefix("民国")
    number = chinese_number(digits)
    if match["era"]:
        number += _BEFORE_THE_REPUBLIC
    elif len(digits) == len("23"):
        two = "".join(str(CHINESE_DIGITS.get(char, char)) for char in digits)
        number = full_year(int(two), today) if two.isdecimal() else -1
    return Phrase(period(Unit.YEAR, date(number, 1, 1))) if number > 0 else None


def _decade(match: re.Match[str], today: date) -> Phrase | None:
    if match["century"]:
        century = {"上个": -1, "上": -1, "本": 0}.get(match["century"])
        first = (
            today.year // 100 * 100 + 100 * century
            if century is not None
            else 100 * (chinese_number(match["century"]) - 1)
        )
        if not match["decade"]:
            return Phrase(period(Unit.CENTURY, date(first, 1, 1)))
        return Phrase(period(Unit.DECADE, date(first + chinese_number(match["decade"]), 1, 1)))
    year = chinese_number(match["decade2"])
    year = full_year(year, today) if year in TWO_FIGURES else year
    return Phrase(period(Unit.DECADE, date(year, 1, 1)))


def _away(unit: Unit, word: str, big: str | None, today: date) -> Phrase:
    """Read 昨天, 大前天, 去年."""
    away = _AWAY[word]
    return Phrase(period(unit, today, away + len(big or "") * (1 if away > 0 else -1)))


def _ago(match: re.Match[str], today: date) -> Phrase | None:
    """Read 三天前, 两周后, 半年前, 三个半月前, 几个月前."""
    unit = _UNITS[match["ago_unit"]]
    sign = -1 if match["ago_way"].endswith("前") else 1
    if counts := _about(match["ago_count"]):
        return about(today, unit, sign, counts)
    half = match["ago_count"] == "半"
    count = 0 if half else chinese_number(match["ago_count"])
    if count < 0:
        return None
    if half or match["ago_half"] or match["ago_half2"]:
        there = moved(today, unit, sign * count)
        there = moved(there, unit.half[1], sign * unit.half[0])
        return Phrase(period(Unit.MONTH if unit.months else Unit.DAY, there))
    there = moved(today, unit, sign * count)
    return Phrase(period(unit if sign < 0 else Unit.DAY, there))


def _about(text: str) -> tuple[int, int] | None:
    """Return the minimum and maximum that a vague number means: 几, 两三, 十几."""
    if text in {"几", "数", "好几"}:
        return FEW
    if text[-1] in "几多来":
        tens = chinese_number(text[:-1])
        return tens + 1, tens + 9
    digits = [CHINESE_DIGITS.get(char, 0) for char in text]
    return (digits[0], digits[1]) if len(digits) == len("两三") and 0 < digits[0] == digits[1] - 1 else None


def _rolling(match: re.Match[str], today: date) -> Phrase | None:
    """Read 最近三天, 过去两周, 近一年, 未来一个月, 这几天; 三天内, 三天以来."""
    way = match["roll_way"] or match["within_way"]
    text = match["roll_count"] or match["within_count"]
    unit = _UNITS[match["roll_unit"] or match["within_unit"]]
    if text == "半":
        count, unit = unit.half
    else:
        count = FEW[1] if text in {"几", "数", "些"} else chinese_number(text)
    if count < 0:
        return None
    ahead = way in {"未来", "今后", "接下来", "往后", "之后", "后", "下", "内", "之内", "以内"}
    sign = 1 if ahead else -1
    there = moved(today, unit, sign * count)
    if way in {"这", "那"}:
        return Phrase(Span(there + ONE_DAY, today))
    if ahead:
        return Phrase(Span(today if way.endswith("内") else today + ONE_DAY, there))
    return Phrase(Span(there, today))


def _units_before(match: re.Match[str], today: date) -> Phrase | None:
    """Read 前两天, 上两周, 上2个月, 前几天: that many whole units before the current one."""
    unit, text = _UNITS[match["before_unit"]], match["before_count"]
    count = FEW[1] if text in {"几", "些", "数"} else chinese_number(text)
    if count < 1:
        return None
    return Phrase(
        Span(period(unit, today, -count).start, period(unit, today, -1).end, unit if count == 1 else None)
    )


def _this(match: re.Match[str], today: date) -> Phrase | None:
    """Read 上周, 上上个月, 这个季度, 下礼拜, 上个周末."""
    way, unit_word = match["way"], match["way_unit"]
    away = {"上": -len(way), "下": len(way), "前": -len(way)}.get(way[0], 0)
    if unit_word == "周末":
        return Phrase(period(Unit.WEEK, today, away)).narrowed(steps.weekend)
    if unit_word == "世纪":
        return Phrase(period(Unit.CENTURY, today, away))
    return Phrase(period(_UNITS[unit_word], today, away))


def _current_part(match: re.Match[str], today: date) -> Phrase:
    """Read 月初, 年底, 上半年, 中旬: a part of the current month or year."""
    unit = _UNITS[match["part_unit"]] if match["part_unit"] else Unit.MONTH
    which = match["part_word"] or match["part_word2"]
    return Phrase(period(unit, today)).narrowed(steps.part(_PARTS[which], narrow=which in _NARROW))


def _current_half(match: re.Match[str], today: date) -> Phrase:
    unit = _UNITS[match["half_unit"]]
    return Phrase(period(unit, today)).narrowed(steps.half_of_it(1 if match["half_which"] in "上前" else 2))


def _lunar(match: re.Match[str], today: date) -> Phrase:
    year = chinese_number(match["lunar_year"]) if match["lunar_year"] else None
    if year is None:
        return one_of(Unit.YEAR, _lunar_step(match))
    year = full_year(year, today) if year in TWO_FIGURES else year
    return Phrase(period(Unit.YEAR, date(year, 1, 1))).narrowed(_lunar_step(match))


def _lunar_step(match: re.Match[str]) -> Step:
    name = match["lunar_month"].removeprefix("闰")
    month = lunar.MONTHS.get(name) or chinese_number(name)
    said = match["lunar_day"]
    number = chinese_number(said.removeprefix("初")) if said else None
    return lunar.lunar(-month if match["lunar_month"].startswith("闰") else month, number)


def _festival(match: re.Match[str], today: date) -> Phrase | None:
    """Read 春节, 上个中秋, 下一个端午; without a word before it, the latest that has begun."""
    if match["festival"] in lunar.ONLY_AHEAD and not isinstance(today, DayAhead):
        return None
    one = one_of(Unit.YEAR, lunar.festival(match["festival"]))
    if not match["festival_way"]:
        return one
    span = one.after(today + ONE_DAY) if match["festival_way"] == "下" else one.until(today - ONE_DAY)
    return Phrase(span) if span else None


def steps_of(match: re.Match[str], today: date) -> tuple[Step, ...]:
    """Return the steps by which the next piece of text narrows the phrase; none if it says nothing."""
    kind = match.lastgroup or ""
    text = match[kind]
    if kind == "nth":
        return _counted(match)
    if kind == "lunar":
        return (_lunar_step(match),)
    if kind == "same":
        return (steps.same_as(Unit.DAY if "天" in text or "日" in text else Unit.MONTH, today),)
    return (_STEPS[kind](text),)


_STEPS: dict[str, Callable[[str], Step]] = {
    "festival": lunar.festival,
    "month": lambda text: steps.month(chinese_number(text)),
    "day": lambda text: steps.day_of_month(chinese_number(text)),
    "bare_day": lambda text: steps.day_of_month(chinese_number(text)),
    "weekday": lambda text: steps.weekday(_WEEKDAYS[text], strict=False),
    "weekday2": lambda text: steps.weekday(_WEEKDAYS[text], strict=False),
    "part": lambda text: steps.part(_PARTS[text], narrow=text in _NARROW),
    "season": lambda text: steps.season(_SEASONS[text]),
    "half": lambda text: steps.half_of_it(1 if text in "上前" else 2),
    "quarter": lambda text: steps.nth(Unit.QUARTER, chinese_number(text)),
}


def _counted(match: re.Match[str]) -> tuple[Step, ...]:
    """Read 第二周, 最后五天, 前三个月."""
    which = chinese_number(match["nth_which"]) if match["nth_which"] else 0
    count = chinese_number(match["nth_count"]) if match["nth_count"] else 1
    last = match["nth_way"] in {"最后", "后", "末"}
    if match["nth_weekday"]:
        return (steps.nth_weekday(_WEEKDAYS[match["nth_weekday"]], which if which > 0 else -1),)
    if match["nth_weekend"]:
        return (steps.nth_weekend(which if which > 0 else -1),)
    unit = _UNITS[match["nth_unit"]]
    if which > 0:
        return (steps.nth(unit, which, begun_weeks=True),)
    if count < 1:
        return ()
    return (steps.nth(unit, -1 if last else 1, count, begun_weeks=True),)


_Reader = Callable[[re.Match[str], date], Phrase | None]
READERS: dict[str, _Reader] = {
    "lunar_": _lunar,
    "festival_": _festival,
    "day_": lambda match, today: _away(Unit.DAY, match["day_word"], match["big"], today),
    "year_": _year,
    "decade_": _decade,
    "year_word_": lambda match, today: _away(Unit.YEAR, match["year_word"], match["big_year"], today),
    "ago_": _ago,
    "roll_": _rolling,
    "within_": _rolling,
    "before_": _units_before,
    "this_": _this,
    "part_": _current_part,
    "half_": _current_half,
    "month_": lambda match, _: one_of(Unit.YEAR, steps.month(chinese_number(match["only_month"]))),
    "date_": lambda match, _: one_of(Unit.MONTH, steps.day_of_month(chinese_number(match["only_day"]))),
    "weekday_": lambda match, _: one_of(Unit.WEEK, steps.weekday(_WEEKDAYS[match["only_weekday"]])),
    "weekend_": lambda _match, _today: one_of(Unit.WEEK, steps.weekend),
    "quarter_": lambda match, _: one_of(
        Unit.YEAR, steps.nth(Unit.QUARTER, chinese_number(match["only_quarter"] or match["only_quarter2"]))
    ),
    "season_": lambda match, _: one_of(Unit.YEAR, steps.season(_SEASONS[match["only_season"]])),
}
