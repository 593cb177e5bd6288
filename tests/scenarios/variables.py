"""`{{…}}` in a file: dates relative to today, long texts, and what steps have kept."""

import re
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

_PLACE = re.compile(r"\{\{(.+?)\}\}")
_PAST = re.compile(r"-(\d+) (\d\d):(\d\d)")
_TIMES = {"minutes": 60, "minute": 60, "hours": 3600, "hour": 3600, "days": 86400, "day": 86400}


class UnknownName(ValueError):
    """Nothing has this name."""


class Variables:
    """Fills places."""

    def __init__(self, timezone: str | None) -> None:
        self.zone = ZoneInfo(timezone or "Asia/Shanghai")
        self.kept: dict[str, Any] = {}

    def fill(self, value: Any) -> Any:
        """The value with every place filled, in whatever it is nested. Raises `UnknownName` if no step has kept
        that."""
        if isinstance(value, str):
            return _PLACE.sub(lambda match: str(self._of(match[1].strip())), value)
        if isinstance(value, list | tuple):
            return [self.fill(each) for each in value]
        if isinstance(value, dict):
            return {self.fill(name): self.fill(each) for name, each in value.items()}
        return value

    def _of(self, name: str) -> Any:
        if name in self.kept:
            return self.kept[name]
        form, _, rest = name.partition(" ")
        if form == "repeat":
            count, _, text = rest.partition(" ")
            return text * int(count)
        if form in {"day", "zh", "en", "weekday_zh", "weekday_en"}:
            return _written(form, self._today() + timedelta(days=int(rest or 0)))
        raise UnknownName(f"there is no {{{{{name}}}}}; known are {sorted(self.kept)}")

    def _today(self) -> date:
        return datetime.now(self.zone).date()

    def moment(self, told: str) -> datetime:
        """`-2 20:00` (local time, two days ago) or a local time in ISO form, as an instant. Raises
        `UnknownName` if it is neither."""
        if match := _PAST.fullmatch(told):
            days, hour, minute = (int(each) for each in match.groups())
            at = datetime.combine(self._today() - timedelta(days=days), datetime.min.time(), self.zone)
            return at.replace(hour=hour, minute=minute)
        try:
            return datetime.fromisoformat(told).replace(tzinfo=self.zone)
        except ValueError:
            raise UnknownName(f"{told!r} is no time such as -2 20:00 or 2025-03-09T01:30") from None


def duration(told: str) -> timedelta:
    """`40 minutes`, `3 days`. Raises `UnknownName` if it is none."""
    count, _, unit = told.partition(" ")
    if not count.isdigit() or unit not in _TIMES:
        raise UnknownName(f"{told!r} is no time such as 40 minutes, 2 hours or 3 days")
    return timedelta(seconds=int(count) * _TIMES[unit])


def _written(form: str, day: date) -> str:
    if form == "zh":
        return f"{day.month}月{day.day}日"
    if form == "en":
        return f"{day:%B} {day.day}"
    if form == "weekday_zh":
        return "一二三四五六日"[day.weekday()]
    if form == "weekday_en":
        return f"{day:%A}"
    return day.isoformat()
