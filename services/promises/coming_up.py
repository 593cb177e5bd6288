"""The line of a visit's first prompt on what is coming up: promises, and dates of the profile, within a week.

It also tells what was settled since the last visit: promises, and plans whose day is past.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, LiteralString

from services.memory.core.items import values_of
from services.promises.promise import stands
from services.text.language import Language
from services.text.marks import one_line
from services.time_reference.local_days import time_zone
from services.time_reference.occasions import fixed_day, last_day
from services.time_reference.parse import parse

# Within the statement that reads the user's activity; nothing is looked up while a visit goes on. The source is
# read for each promise: joined, a plan made while there were few messages would read all of them in every turn.
# Plans that have retired are not told where anything was forgotten since.
COMING_UP: LiteralString = """SELECT coalesce(jsonb_agg(to_jsonb(p) ORDER BY p.due_at), '[]') FROM (
    (SELECT p.text, p.quote, p.state, p.due_at, p.source_message_id,
           (SELECT m.memory_text FROM messages m WHERE m.id = p.source_message_id) AS source_text,
           (SELECT m.retracted_at IS NOT NULL OR m.branch_id IS NOT NULL FROM messages m
            WHERE m.id = p.source_message_id) AS source_goes
    FROM promises p
    WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s AND p.expert_id = %(expert_id)s
      AND (p.space_id IS NULL OR p.space_id = %(space_id)s) AND p.due_at < %(coming_until)s
      AND p.event IS DISTINCT FROM 'changed'
      AND (p.state = 'open' OR p.state IN ('kept', 'missed') AND p.settled_at > coalesce((
          SELECT max(v.last_active_at) FROM visits v WHERE v.tenant_id = %(tenant_id)s
            AND v.user_id = %(user_id)s AND v.expert_id = %(expert_id)s), 'infinity'))
    ORDER BY p.state <> 'open', p.due_at LIMIT 5)
    UNION ALL (SELECT o.results->'items'->>0, '', 'past', o.at, NULL, NULL, NULL
    FROM memory_operations o
    WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_command'
      AND o.trigger->>'actor' = 'maintenance' AND o.trigger->>'expert_id' = %(expert_id)s::text
      AND (o.space_id IS NULL OR o.space_id = %(space_id)s) AND o.undone_at IS NULL AND o.at > coalesce((
          SELECT max(v.last_active_at) FROM visits v WHERE v.tenant_id = %(tenant_id)s
            AND v.user_id = %(user_id)s AND v.expert_id = %(expert_id)s), 'infinity')
      AND NOT EXISTS (SELECT FROM memory_operations f WHERE f.tenant_id = o.tenant_id AND f.user_id = o.user_id
          AND f.type = 'memory_command' AND f.field = 'forget' AND f.at > o.at AND f.undone_at IS NULL)
    ORDER BY o.at DESC LIMIT 3)
) AS p WHERE NOT EXISTS (SELECT FROM visits v WHERE v.tenant_id = %(tenant_id)s AND v.user_id = %(user_id)s
    AND v.expert_id = %(expert_id)s AND v.last_active_at > %(visiting_since)s)"""

_MOST_TOKENS = 60
_WITHIN = timedelta(days=7)
_LOOK_BACK = timedelta(days=30)
_VISIT = timedelta(minutes=30)
_LONGEST = 60
_DATED_FIELDS = frozenset(["plans", "dates", "birthday"])
_LINES: dict[Language, Mapping[str, str]] = {
    "en": {
        "promised": "You promised the user: {items}. ",
        "dated": "Dates of theirs: {items}. ",
        "ask": "Ask how it went once at most, only if it fits and no wish of theirs forbids it.",
    },
    "zh": {
        "promised": "你答应过用户：{items}。",
        "dated": "用户的日子：{items}。",
        "ask": "合适、用户也没有说过不要时，可以问一次结果，最多一次。",
    },
}
_ITEM: dict[Language, Mapping[str, str]] = {
    "en": {
        **{"open": "{at} {text}", "kept": "{at} {text} (said)", "missed": "{at} {text} (missed)"},
        **{"past": "{text} (is past)", "soon": "{at} {text}"},
    },
    "zh": {
        **{"open": "{at} {text}", "kept": "{at} {text}（已提醒）", "missed": "{at} {text}（错过了）"},
        **{"past": "{text}（已过）", "soon": "{at} {text}"},
    },
}
_JOINT: dict[Language, str] = {"en": "; ", "zh": "；"}


def coming_up_within(now: datetime) -> dict[str, datetime]:
    """Return the values of `COMING_UP` at a moment."""
    return {"coming_until": now + _WITHIN, "visiting_since": now - _VISIT}


def coming_up_line(
    rows: Sequence[Mapping[str, Any]],
    profile: Sequence[Mapping[str, Any]],
    timezone: str,
    language: Language,
    count: Callable[[str], int],
    *,
    now: datetime,
    last_visit: datetime | None,
) -> str:
    """Return the line, of 60 tokens at most by `count`; empty where nothing comes up, and within a visit.

    Only the first line of a day invites the model to ask how something went.

    Args:
        rows: those of `COMING_UP`.
        profile: the contents of the user's sections of core memory.
    """
    if last_visit is not None and now - last_visit <= _VISIT:
        return ""
    zone = time_zone(timezone)
    today = now.astimezone(zone).date()
    seen = last_visit.astimezone(zone).date() if last_visit else today
    items = [
        ("dated" if row["state"] == "past" else "promised", _item(row["state"], at, row["text"], language))
        for row in rows
        if stands(row)
        for at in (f"{datetime.fromisoformat(row['due_at']).astimezone(zone):%m-%d %H:%M}",)
    ]
    for day, text in _dated(profile, max(seen, today - _LOOK_BACK), today):
        items.append(("dated", _item("past" if day < today else "soon", f"{day:%m-%d}", text, language)))
    ask = "" if last_visit and seen == today else _LINES[language]["ask"]
    for most in range(len(items), 0, -1):
        line = ""
        for kind in ("promised", "dated"):
            if shown := _JOINT[language].join(item for each, item in items[:most] if each == kind):
                line += _LINES[language][kind].format(items=shown)
        line = (line + ask).strip()
        if count(line) <= _MOST_TOKENS or most == 1:
            return line
    return ""


def _item(state: str, at: str, text: str, language: Language) -> str:
    return _ITEM[language][state].format(at=at, text=one_line(text)[:_LONGEST])


def _dated(profile: Sequence[Mapping[str, Any]], since: date, today: date) -> Iterator[tuple[date, str]]:
    """Yield what of a profile has a day within a week or since the last visit, in order."""
    found = []
    for field, text in (each for content in profile for each in values_of(content) if each[0] in _DATED_FIELDS):
        day = _birthday(text, today) if field == "birthday" else last_day(text, since)
        if day and day <= today + _WITHIN and (field == "birthday" or day == fixed_day(text, since)):
            found.append((day, text))
    yield from sorted(found)


def _birthday(text: str, today: date) -> date | None:
    """Return the next birthday of somebody who was born on the day that a text names."""
    named = parse(text, datetime.combine(today, time()))
    try:
        days = [named[0].start.replace(year=today.year + years) for years in (0, 1)] if len(named) == 1 else []
    except ValueError:  # a leap day
        return None
    return next((day for day in days if day >= today), None)
