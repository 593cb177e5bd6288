"""The present time in the prompt: the user's date and time, and how long they were away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from psycopg.rows import class_row

from services.context.source import WEEKDAYS, PromptDraft, Source
from services.memory.blocks import Owner
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.text.language import Language
from services.time_reference.local_days import time_zone
from state.section import Item, Section

_MOST_VISITS = 1000
_NEWEST_VISITS = 10
"""Number of visits in which the last topic is searched for."""

# Nothing here grows with a user's history: visits are counted up to a limit, in an index.
KNOWN: LiteralString = """
SELECT (SELECT count(*) FROM (
            SELECT FROM visits WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
            AND expert_id = %(expert_id)s AND (space_id IS NULL OR space_id = %(space_id)s)
            LIMIT %(most_visits)s
        ) AS counted) AS visit_count,
       (SELECT max(last_active_at) FROM visits WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
            AND expert_id = %(expert_id)s AND (space_id IS NULL OR space_id = %(space_id)s)) AS last_visit,
       coalesce((SELECT array(SELECT jsonb_array_elements_text(key_topics)) FROM (
            SELECT key_topics, last_active_at FROM visits WHERE tenant_id = %(tenant_id)s
            AND user_id = %(user_id)s AND expert_id = %(expert_id)s
            AND (space_id IS NULL OR space_id = %(space_id)s)
            ORDER BY last_active_at DESC LIMIT %(newest_visits)s
        ) AS newest WHERE key_topics <> '[]' ORDER BY last_active_at DESC LIMIT 1), '{}') AS last_topics
"""

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


@dataclass(frozen=True)
class UserActivity:
    """A user's activity with an expert."""

    visit_count: int = 0
    """Number of earlier visits; at most 1000 are counted."""
    last_visit: datetime | None = None
    """When the user was last active; None = never."""
    last_topics: Sequence[str] = ()
    """Topics of the newest summarised visit."""


NO_ACTIVITY = UserActivity()


async def user_activity(database: Database, owner: Owner) -> UserActivity:
    """Read a user's activity with an expert."""
    values = {**vars(owner), "most_visits": _MOST_VISITS, "newest_visits": _NEWEST_VISITS}
    return (await database.read(owner.tenant_id, Query(KNOWN, values, class_row(UserActivity))))[0]


class UserActivitySource(Source[UserActivity]):
    """Reads the activity for the persona card and the present time."""

    name = "visits"
    features = frozenset({"persona_card", "time"})

    def __init__(self, database: Database) -> None:
        self._database = database

    def when_off(self) -> UserActivity:
        """Nobody is known."""
        return NO_ACTIVITY

    async def load(self, draft: PromptDraft) -> UserActivity:
        """Return the user's activity with the expert."""
        return await user_activity(self._database, draft.owner)


class TimeSource(Source[None]):
    """Tells the model what time it is for the user."""

    name = "time"
    features = frozenset({"time"})

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """One line."""
        activity = draft.of(UserActivitySource)
        last_visit = activity.last_visit if activity else None
        note = time_note(draft.turn.now, draft.turn.timezone, last_visit, draft.language)
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
