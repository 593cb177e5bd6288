"""The present time in the prompt: the user's date and time, and how long they were away."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from services.context.source import Known, PromptTurn, Source
from services.context.sources.user_activity import UserActivitySource
from services.context.wording import WEEKDAYS
from services.text.language import Language
from services.time_reference.local_days import time_zone
from state.section import Item, Section

_PRIORITY = 50

_NOW: dict[Language, str] = {
    "en": "Now: {weekday}, {now:%Y-%m-%d %H:%M} ({zone}).",
    "zh": "现在：{now:%Y-%m-%d} {weekday} {now:%H:%M}（{zone}）。",
}
_AWAY: dict[Language, Mapping[str, str]] = {
    "en": {
        "yesterday": " The user was last here yesterday.",
        "days": " The user was last here {count} days ago.",
        "months": " The user was last here about {count} months ago.",
        "year": " The user was last here about a year ago.",
        "years": " The user was last here about {count} years ago.",
    },
    "zh": {
        "yesterday": "用户上次来是昨天。",
        "days": "用户上次来是{count}天前。",
        "months": "用户上次来是约{count}个月前。",
        "year": "用户上次来是约一年前。",
        "years": "用户上次来是约{count}年前。",
    },
}
_YEAR, _MONTH = 365, 30


class TimeSource(Source[None]):
    """Tells the model what time it is for the user."""

    name = "time"
    features = frozenset({"time"})

    def select(self, turn: PromptTurn, known: Known) -> Sequence[Section]:
        """One line."""
        user_activity = known.of(UserActivitySource)
        last_visit = user_activity.last_visit if user_activity else None
        note = time_note(turn.now, turn.timezone, last_visit, known.conversation.language)
        return (Section("time", items=[Item(note)], priority=_PRIORITY),)


def time_note(now: datetime, timezone: str, last_visit: datetime | None, language: Language) -> str:
    """The local date, weekday and time, and how long ago the user was here, unless that was today.

    Raises:
        BadTimeZone: there is no such time zone.
    """
    zone = time_zone(timezone)
    local = now.astimezone(zone)
    text = _NOW[language].format(weekday=WEEKDAYS[language][local.weekday()], now=local, zone=timezone)
    days = (local.date() - last_visit.astimezone(zone).date()).days if last_visit else 0
    return text + (_away(days, language) if days > 0 else "")


def _away(days: int, language: Language) -> str:
    words = _AWAY[language]
    if days == 1:
        return words["yesterday"]
    if days < 2 * _MONTH:
        return words["days"].format(count=days)
    if days < _YEAR:
        return words["months"].format(count=round(days / _MONTH))
    years = round(days / _YEAR)
    return words["year"] if years == 1 else words["years"].format(count=years)
