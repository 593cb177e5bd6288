"""Values of cells in their number formats: 15%, 0571, 27:30, 2025年12月."""

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache

_MONTH, _DAY, _FULL = 'yyyy"年"m"月"', 'm"月"d"日"', 'yyyy"年"m"月"d"日"'
_TO_MINUTE, _TO_SECOND = 'h"时"mm"分"', 'h"时"mm"分"ss"秒"'
DATES_OF_CHINESE_EXCEL = {
    **dict.fromkeys((27, 36, 50, 52, 57), _MONTH),
    **dict.fromkeys((28, 29, 51, 53, 54, 58), _DAY),
    **{30: "m-d-yy", 31: _FULL, 32: _TO_MINUTE, 33: _TO_SECOND},
    **{34: _TO_MINUTE, 35: _TO_SECOND, 55: _TO_MINUTE, 56: _TO_SECOND},
}
"""Formats that have no text in a file, by their ids; the Japanese ones are the same but for two times."""

_TOKEN = re.compile(
    r"""(?P<text>"[^"]*"?|[\\!_*].)|\[\$(?P<currency>[^\]-]{0,99})[^\]]{0,99}\]|\[(?P<passed>h+|m+|s+)\]"""
    r"""|\[(?P<sign>[<>=]+)(?P<limit>-?[\d.]+)\]|\[[^\]]{0,99}\]|(?P<half>AM/PM|A/P|上午/下午)|(?P<general>General)"""
    r"""|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?|aaa+|e+(?![+-])|g+)|(?P<exponent>E[+-])|(?P<digit>[0#?])|(?P<other>.)""",
    re.IGNORECASE | re.DOTALL,
)
_NUMERIC_DATE = re.compile(r"\b[ymd]+(\\?[-/.])[ymd]+\1[ymd]+", re.IGNORECASE)
_CHINESE = re.compile(r"\[\$-(?:[\da-f]*804|zh)", re.IGNORECASE)
_JAPANESE = re.compile(r"\[\$-(?:[\da-f]*411|ja)", re.IGNORECASE)
_WEEKDAYS = "一二三四五六日"
_OF_WEEK_IN_CHINESE = {"aaa": "", "aaaa": "星期"}
_OF_WEEK = {"ddd": "周", "dddd": "星期"}
_CALENDAR = {
    "yy": "%y",
    "y": "%y",
    "mmm": "%b",
    "mmmm": "%B",
    "ddd": "%a",
    "dddd": "%A",
}
_ERAS = ((date(2019, 5, 1), "令和"), (date(1989, 1, 8), "平成"), (date(1926, 12, 25), "昭和"))
_HALF_A_DAY = 12 * 3600
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_TEXT_SECTION = 3

_Tokens = list[re.Match[str]]


def shows_date(code: str) -> bool:
    """Return whether a format shows a number as a date, whether or not the library knows that."""
    return any(token["date"] for token in _tokens(_sections(code)[0]))


def as_shown(value: object, code: str) -> str:
    """Return the value of a cell in its number format. A date in numbers is written as 2025-12-29, whatever the
    order of its numbers. A value that the format cannot show is as it is."""
    try:
        if code == "General" and not isinstance(value, (bool, float, date, time, timedelta)):
            return str(value)
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, (date, time, timedelta)):
            return _moment(value, _sections(code)[0])
        if isinstance(value, (int, float)):
            return _number(value, code)
        sections = _sections(code)
        text = sections[-1] if len(sections) in {1, _TEXT_SECTION + 1} and "@" in sections[-1] else "@"
        return "".join(str(value) if token[0] == "@" else _literal(token) for token in _tokens(text))
    except (ValueError, ArithmeticError, AttributeError):
        return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, (int, float)):
        return str(int(value)) if float(value).is_integer() else f"{value:.15g}"
    return str(value)


@lru_cache(maxsize=512)
def _tokens(section: str) -> _Tokens:
    return list(_TOKEN.finditer(section))


@lru_cache(maxsize=512)
def _sections(code: str) -> list[str]:
    sections = [""]
    for token in _tokens(code):
        if token["other"] == ";":
            sections.append("")
        else:
            sections[-1] += token[0]
    return sections[: _TEXT_SECTION + 1]


def _literal(token: re.Match[str]) -> str:
    if token["text"]:
        mark, rest = token[0][0], token[0][1:]
        return rest.rstrip('"') if mark == '"' else rest if mark in "\\!" else " " * (mark == "_")
    return token["currency"] or token["other"] or ""


_USUAL = re.compile(r"(#,##)?0(?:\.(0+))?(%)?")
"""Simple formats, which nearly all numbers have; they need none of the other rules."""


def _number(value: float, code: str) -> str:
    if usual := _USUAL.fullmatch(code):
        rounded = _rounded(Decimal(repr(value)) * (100 if usual[3] else 1), len(usual[2] or ""))
        return f"{rounded or abs(rounded):{',' if usual[1] else ''}f}{usual[3] or ''}"
    sections = [_tokens(each) for each in _sections(code)[:_TEXT_SECTION]]
    tokens, is_first = _section(value, sections)
    general = next((at for at, token in enumerate(tokens) if token["general"] or token[0] == "@"), None)
    if general is not None or not code:
        before, after = tokens[:general], tokens[(general or 0) + 1 :]
        return f"{''.join(map(_literal, before))}{_plain(value)}{''.join(map(_literal, after))}".strip()
    number = abs(Decimal(repr(value))) * 100 ** sum(token["other"] == "%" for token in tokens)
    written = (
        _fraction(tokens, number) if any(token["other"] == "/" for token in tokens) else _decimal(tokens, number)
    )
    has_sign = value < 0 and is_first and re.search("[1-9]", written)
    return f"{'-' if has_sign else ''}{written.strip()}"


def _section(value: float, sections: list[_Tokens]) -> tuple[_Tokens, bool]:
    """Return the section that shows a number, and whether it is the first one, which shows the sign."""
    conditions = [next((token for token in each if token["sign"]), None) for each in sections]
    if any(conditions):
        for at, condition in enumerate(conditions):
            if condition is None or _holds(value, condition["sign"], float(condition["limit"])):
                return sections[at], at == 0 or condition is None
        raise ValueError("no section is for this value")
    at = 1 if value < 0 else 2 if value == 0 else 0
    return (sections[at], at == 0) if at < len(sections) else (sections[0], True)


def _holds(value: float, sign: str, limit: float) -> bool:
    equal, less = value == limit, value < limit
    return {"<": less, "<=": less or equal, "=": equal, "<>": not equal, ">=": not less}.get(
        sign, not (less or equal)
    )


def _decimal(tokens: _Tokens, number: Decimal) -> str:
    at = next((place for place, token in enumerate(tokens) if token["exponent"]), len(tokens))
    mantissa, exponent = tokens[:at], tokens[at + 1 :]
    point = next((place for place, token in enumerate(mantissa) if token["other"] == "."), at)
    whole = [place for place, token in enumerate(mantissa) if token["digit"] and place < point]
    decimals = [place for place, token in enumerate(mantissa) if token["digit"] and place > point]
    commas = {place for place, token in enumerate(mantissa) if token["other"] == ","}
    ends = {max(whole, default=-1), max(decimals, default=-1)}
    scaling = {
        place for place in commas if any(set(range(end + 1, place)) <= commas for end in ends if end < place)
    }
    grouped = any(whole[0] < place < whole[-1] for place in commas - scaling) if whole else False
    power = 0
    if exponent and number:
        wide = max(1, len(whole))
        power = number.adjusted() // wide * wide
    number = _rounded(number.scaleb(-power - 3 * len(scaling)), len(decimals))
    digits, _, fraction = f"{number:f}".partition(".")
    needed = next((len(whole) - place for place, at in enumerate(whole) if mantissa[at]["digit"] == "0"), 0)
    shown = dict(zip(decimals, fraction, strict=False)) | _spread(digits.lstrip("0").zfill(needed), whole, grouped)
    for place in reversed(decimals):
        if shown[place] != "0" or mantissa[place]["digit"] == "0":
            break
        shown[place] = ""
    shown |= dict.fromkeys(commas, "")
    if not any(shown[place] for place in decimals):
        shown[point] = ""
    written = "".join(shown.get(place, _literal(token)) for place, token in enumerate(mantissa))
    if not exponent:
        return written
    sign = "-" if power < 0 else "+" if tokens[at][0][1] == "+" else ""
    return f"{written}E{sign}{str(abs(power)).zfill(sum(token['digit'] == '0' for token in exponent))}"


def _rounded(number: Decimal, decimals: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def _spread(digits: str, places: list[int], grouped: bool) -> dict[int, str]:
    """Put the digits of a whole number into the places of a format; the first place takes all that are too
    many."""
    pieces = list(digits)
    if grouped:
        last = len(pieces) - 1
        pieces = [each + "," * (at != last and (last - at) % 3 == 0) for at, each in enumerate(pieces)]
    spare = max(0, len(pieces) - len(places))
    held = ["".join(pieces[: spare + 1]), *pieces[spare + 1 :]] if pieces else []
    return dict.fromkeys(places, "") | dict(zip(reversed(places), reversed(held), strict=False))


def _fraction(tokens: _Tokens, number: Decimal) -> str:
    """Return `1 1/2`: a number in a format with a denominator, which the format may name."""
    bar = next(place for place, token in enumerate(tokens) if token["other"] == "/")
    below = "".join(token[0] for token in tokens[bar + 1 :] if token["digit"] or token[0].isdigit())
    exact = Fraction(number)
    most = 10 ** len(below) - 1
    part = Fraction(round(exact * int(below)), int(below)) if below.strip("0#?") else exact.limit_denominator(most)
    whole, rest = divmod(part, 1) if " " in "".join(map(_literal, tokens[:bar])) else (0, part)
    return " ".join(filter(None, (str(whole) if whole or not rest else "", f"{rest}" if rest else "")))


@lru_cache(maxsize=4096)
def _moment(value: date | time | timedelta, code: str) -> str:
    if isinstance(value, date):
        day = value.date() if isinstance(value, datetime) else value
        iso = f'"{day.isoformat()}"'
        code = _NUMERIC_DATE.sub(lambda found: iso if set("ymd") <= set(found[0].lower()) else found[0], code)
    tokens = _tokens(code)
    if not any(token["date"] and "." in token["date"] for token in tokens):
        value = _to_second(value)
    if not any(token["date"] or token["passed"] for token in tokens) and '"' not in code:
        return value.isoformat(" ") if isinstance(value, datetime) else str(value)
    marks = [(token["date"] or token["passed"] or "").lower()[:1] for token in tokens]
    twelve = any(token["half"] for token in tokens)
    written = []
    for at, token in enumerate(tokens):
        before = next((mark for mark in reversed(marks[:at]) if mark), "")
        after = next((mark for mark in marks[at + 1 :] if mark), "")
        name = token[0].lower()
        if token["passed"]:
            written.append(str(int(_seconds(value) // _SECONDS[name[1]])).zfill(len(token["passed"])))
        elif token["half"]:
            written.append("PM" if _seconds(value) % (2 * _HALF_A_DAY) >= _HALF_A_DAY else "AM")
        elif token["date"] and (name[0] in "hs" or (name in {"m", "mm"} and (before == "h" or after == "s"))):
            written.append(_clock(name, _seconds(value), twelve))
        elif token["date"]:
            written.append(_calendar(name, value, code))
        else:
            written.append(token[0] if token["digit"] else _literal(token))
    return "".join(written).strip()


def _to_second(value: date | time | timedelta) -> date | time | timedelta:
    """Round a time to the second: files hold times as fractions of days, which are not exact."""
    if isinstance(value, timedelta):
        return timedelta(seconds=round(value.total_seconds()))
    if isinstance(value, datetime):
        return (value + timedelta(seconds=0.5)).replace(microsecond=0)
    return (
        (datetime.combine(date.min, value) + timedelta(seconds=0.5)).time() if isinstance(value, time) else value
    )


def _seconds(value: date | time | timedelta) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (datetime, time)):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return 0.0


def _clock(name: str, seconds: float, twelve: bool) -> str:
    width = len(name.partition(".")[0])
    if name[0] == "h":
        hour = int(seconds // 3600) % 24
        return str((hour - 1) % 12 + 1 if twelve else hour).zfill(width)
    if name[0] == "m":
        return str(int(seconds // 60) % 60).zfill(width)
    decimals = len(name.partition(".")[2])
    return f"{seconds % 60:0{width + 1 + decimals if decimals else width}.{decimals}f}"


def _calendar(name: str, value: date | time | timedelta, code: str) -> str:
    if not isinstance(value, date):
        raise ValueError("a time of day has no date")
    day = value.date() if isinstance(value, datetime) else value
    begun = [(day.year - begin.year + 1, era) for begin, era in _ERAS if day >= begin and _JAPANESE.search(code)]
    if name[0] == "g":
        return begun[0][1] if begun else ""
    if name[0] == "e" and begun and "g" in code.lower():
        return str(begun[0][0])
    if name in _OF_WEEK_IN_CHINESE or (name in _OF_WEEK and _CHINESE.search(code)):
        return f"{_OF_WEEK_IN_CHINESE.get(name) or _OF_WEEK[name]}{_WEEKDAYS[value.weekday()]}"
    usual = "%Y" if name[0] in "ye" else f"%{name[0]}"
    written = f"{value:{_CALENDAR.get(name, usual)}}"
    return written.lstrip("0") if len(name) == 1 else written
