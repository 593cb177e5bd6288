"""The present time in the prompt: the user's date and time, how long they were away, and how they felt then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString

from psycopg.rows import class_row

from services.context.source import WEEKDAYS, PromptDraft, Source, readable
from services.memory.core.blocks import Owner
from services.memory.reading.mood import Feeling
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.promises.coming_up import COMING_UP, coming_up_line, coming_up_within
from services.promises.quiet import is_quiet
from services.text.language import Language
from services.time_reference.local_days import time_zone
from state.section import Item, Section

_MOST_VISITS = 1000
_NEWEST_VISITS = 10
"""Number of visits in which the last topic is searched for."""

# Nothing here grows with a user's history: visits are counted up to a limit, in an index.
KNOWN: LiteralString = f"""
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
        ) AS newest WHERE key_topics <> '[]' ORDER BY last_active_at DESC LIMIT 1), '{{}}') AS last_topics,
       (SELECT jsonb_build_object('message_id', m.id, 'conversation_id', m.conversation_id, 'at', m.created_at,
                   'feeling', m.feeling, 'span', m.feeling_span, 'text', coalesce(m.memory_text, m.content))
            FROM users u JOIN visits v ON v.user_id = u.id AND u.mood
            JOIN messages m ON m.conversation_id = v.conversation_id AND m.tenant_id = v.tenant_id
                AND m.created_at BETWEEN v.started_at AND v.last_active_at
            WHERE v.tenant_id = %(tenant_id)s AND v.user_id = %(user_id)s AND v.expert_id = %(expert_id)s
              AND (v.space_id IS NULL OR v.space_id = %(space_id)s) AND v.last_active_at > %(felt_since)s
              AND m.feeling IS NOT NULL AND m.created_at > %(felt_since)s
              AND m.retracted_at IS NULL AND m.branch_id IS NULL
              AND %(most_visits_after)s > (SELECT count(*) FROM visits later WHERE later.tenant_id = %(tenant_id)s
                  AND later.user_id = %(user_id)s AND later.expert_id = %(expert_id)s
                  AND later.started_at > m.created_at)
            ORDER BY m.created_at DESC LIMIT 1) AS mood,
       ({COMING_UP}) AS coming_up,
       coalesce((SELECT quiet_hours FROM users u WHERE u.tenant_id = %(tenant_id)s AND u.id = %(user_id)s),
           %(quiet_hours)s) AS quiet_hours
"""  # noqa: S608 — our own text only

_PRIORITY = 50
_FELT_FOR = timedelta(days=3)
_FELT_FOR_VISITS = 3
"""How long a feeling is told: until as many visits have followed, or so much time has passed."""

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
_FELT: dict[Language, str] = {
    "en": "{day} the user was {feeling}, in their own words: “{words}”",
    "zh": "{day}用户感到{feeling}，原话是：“{words}”",
}
_FELT_DAYS: dict[Language, Sequence[str]] = {
    "en": ("Earlier today", "Yesterday", "Two days ago", "Three days ago"),
    "zh": ("今天早些时候", "昨天", "前天", "三天前"),
}
_FEELINGS: dict[Feeling, str] = {
    "anxious": "焦虑不安",
    "sad": "难过",
    "grieving": "悲痛",
    "angry": "生气",
    "lonely": "孤独",
    "tired": "疲惫",
    "confused": "困惑",
    "excited": "兴奋",
    "proud": "自豪",
    "calm": "平静",
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
    mood: Mapping[str, Any] | None = None
    """The user's feeling of late: `feeling`, when (`at`), and the message that says it, `text` within `span`."""
    coming_up: Sequence[Mapping[str, Any]] = ()
    """Promises that are due within a week, or were settled since the last visit; empty within a visit."""
    quiet_hours: str = "never"
    """When nothing is said unasked."""


NO_ACTIVITY = UserActivity()


async def user_activity(
    database: Database, owner: Owner, now: datetime, quiet_hours: str = "never"
) -> UserActivity:
    """Read a user's activity with an expert, as of a moment."""
    values = {
        **vars(owner),
        "most_visits": _MOST_VISITS,
        "newest_visits": _NEWEST_VISITS,
        "felt_since": now - _FELT_FOR,
        "most_visits_after": _FELT_FOR_VISITS,
        "quiet_hours": quiet_hours,
        **coming_up_within(now),
    }
    return (await database.read(owner.tenant_id, Query(KNOWN, values, class_row(UserActivity))))[0]


class UserActivitySource(Source[UserActivity]):
    """Reads the activity for the persona card and the present time."""

    name = "visits"
    features = frozenset({"persona_card", "time", "mood"})

    def __init__(self, database: Database, quiet_hours: str = "never") -> None:
        self._database = database
        self._quiet_hours = quiet_hours

    def when_off(self) -> UserActivity:
        """Nobody is known."""
        return NO_ACTIVITY

    async def load(self, draft: PromptDraft) -> UserActivity:
        """Return the user's activity with the expert."""
        return await user_activity(self._database, draft.owner, draft.turn.now, self._quiet_hours)


class TimeSource(Source[None]):
    """Tells the model what time it is for the user."""

    name = "time"
    features = frozenset({"time", "mood"})

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return a line about the time, and one about how the user felt, unless its message is shown."""
        activity = draft.of(UserActivitySource) or NO_ACTIVITY
        turn, items = draft.turn, []
        if "time" in draft.features:
            items.append(Item(time_note(turn.now, turn.timezone, activity.last_visit, draft.language)))
        if {"time", "coming_up"} <= draft.features and (line := self._coming_up(activity, draft)):
            items.append(Item(line))
        mood = activity.mood if "mood" in draft.features else None
        known = draft.shown_messages | draft.excluded | draft.without
        if mood and mood["feeling"] != "calm" and mood["message_id"] not in known:
            about = {"message_id": mood["message_id"]}
            items.append(Item(mood_note(mood, turn.now, turn.timezone, draft.language), about=about))
        return (Section("time", items=items, priority=_PRIORITY),) if items else ()

    def _coming_up(self, activity: UserActivity, draft: PromptDraft) -> str:
        turn = draft.turn
        if is_quiet(activity.quiet_hours, turn.now, turn.timezone):
            return ""
        known = next((data for source, data in draft.data.items() if source.name == "core_memory"), None)
        profile = [block["content"] for block in (known or {}).values()]
        return coming_up_line(
            activity.coming_up,
            profile,
            turn.timezone,
            draft.language,
            draft.tokens.count,
            now=turn.now,
            last_visit=activity.last_visit,
        )


def mood_note(mood: Mapping[str, Any], now: datetime, timezone: str, language: Language) -> str:
    """Return the user's feeling, its time and its words. Raises `BadTimeZone` if there is no such time zone."""
    zone, at = time_zone(timezone), datetime.fromisoformat(mood["at"])
    days = (now.astimezone(zone).date() - at.astimezone(zone).date()).days
    names, (begin, end) = _FELT_DAYS[language], mood["span"]
    words = readable(mood["text"][begin:end], language)
    feeling = _FEELINGS[mood["feeling"]] if language == "zh" else mood["feeling"]
    return _FELT[language].format(day=names[max(0, min(days, len(names) - 1))], feeling=feeling, words=words)


def time_note(now: datetime, timezone: str, last_visit: datetime | None, language: Language) -> str:
    """The local date, weekday and time, and how long ago the user was here, unless that was today. Raises
    `BadTimeZone` if there is no such time zone."""
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
