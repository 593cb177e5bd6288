"""The present time in the prompt: the user's date and time, and how long they were away."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from services.context.source import Known, PromptTurn, Source
from services.context.sources.acquaintance import AcquaintanceSource
from services.context.sources.days import WEEKDAYS
from services.llm.language import Language
from services.time_reference.zones import time_zone
from state.section import Item, Section

_PRIORITY = 50

LONG_AWAY = timedelta(hours=24)

_NOW: dict[Language, str] = {
    "en": "For the user it is {weekday}, {now:%Y-%m-%d %H:%M} ({zone}).",
    "zh": "用户当地时间：{now:%Y-%m-%d} {weekday} {now:%H:%M}（{zone}）。",
}
_AWAY: dict[Language, Mapping[str, str]] = {
    "en": {
        "one_day": " They were last here more than a day ago.",
        "days": " They were last here {count} days ago.",
        "months": " They were last here about {count} months ago.",
        "years": " They were last here more than {count} years ago.",
        "one_year": " They were last here more than a year ago.",
    },
    "zh": {
        "one_day": "用户上次来访是一天多以前。",
        "days": "用户上次来访是{count}天前。",
        "months": "用户上次来访是约{count}个月前。",
        "years": "用户上次来访是{count}年多以前。",
        "one_year": "用户上次来访是一年多以前。",
    },
}
_YEAR, _MONTH = 365, 30


class TimeSource(Source[None]):
    """Tells the model what time it is for the user."""

    name = "time"
    features = frozenset({"time"})

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """One line."""
        acquaintance = known.of(AcquaintanceSource)
        last_visit = acquaintance.last_visit if acquaintance else None
        note = time_note(turn.now, turn.timezone, last_visit, turn.language)
        return (Section("time", items=[Item(note)], priority=_PRIORITY),)


def time_note(now: datetime, timezone: str, last_visit: datetime | None, language: Language) -> str:
    """The local date, weekday and time, and a note where the user's last visit was more than 24 hours ago.

    Raises:
        BadTimeZone: there is no such time zone.
    """
    local = now.astimezone(time_zone(timezone))
    text = _NOW[language].format(weekday=WEEKDAYS[language][local.weekday()], now=local, zone=timezone)
    away = now - last_visit if last_visit else timedelta()
    return text + (_away(away.days, language) if away > LONG_AWAY else "")


def _away(days: int, language: Language) -> str:
    words = _AWAY[language]
    if days <= 1:
        return words["one_day"]
    if days < 2 * _MONTH:
        return words["days"].format(count=days)
    if days < _YEAR:
        return words["months"].format(count=round(days / _MONTH))
    return words["one_year"] if days < 2 * _YEAR else words["years"].format(count=days // _YEAR)
