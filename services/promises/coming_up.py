"""The line of a visit's first prompt on promises: what is due within a week, and what was settled meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, LiteralString

from services.promises.promise import stands
from services.text.language import Language
from services.text.marks import one_line
from services.time_reference.local_days import time_zone

# Within the statement that reads the user's activity; nothing is looked up while a visit goes on. The source is
# read for each promise: joined, a plan made while there were few messages would read all of them in every turn.
COMING_UP: LiteralString = """SELECT coalesce(jsonb_agg(to_jsonb(p) ORDER BY p.due_at), '[]') FROM (
    SELECT p.text, p.quote, p.state, p.due_at, p.settled_at, p.source_message_id,
           (SELECT m.memory_text FROM messages m WHERE m.id = p.source_message_id) AS source_text,
           (SELECT m.retracted_at IS NOT NULL OR m.branch_id IS NOT NULL FROM messages m
            WHERE m.id = p.source_message_id) AS source_goes
    FROM promises p
    WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s AND p.expert_id = %(expert_id)s
      AND (p.space_id IS NULL OR p.space_id = %(space_id)s) AND p.due_at < %(coming_until)s
      AND (p.state = 'open' OR p.state IN ('kept', 'missed') AND p.settled_at > coalesce((
          SELECT max(v.last_active_at) FROM visits v WHERE v.tenant_id = %(tenant_id)s
            AND v.user_id = %(user_id)s AND v.expert_id = %(expert_id)s), 'infinity'))
      AND NOT EXISTS (SELECT FROM visits v WHERE v.tenant_id = %(tenant_id)s AND v.user_id = %(user_id)s
          AND v.expert_id = %(expert_id)s AND v.last_active_at > %(visiting_since)s)
    ORDER BY p.state <> 'open', p.due_at LIMIT 5
) AS p"""

_MOST_TOKENS = 60
_WITHIN = timedelta(days=7)
_VISIT = timedelta(minutes=30)
_LONGEST = 60
_LINE: dict[Language, str] = {
    "en": "You promised the user: {items}. Ask how it went once at most, and only if it fits.",
    "zh": "你答应过用户：{items}。合适时可以问一次结果，最多一次。",
}
_ITEM: dict[Language, Mapping[str, str]] = {
    "en": {"open": "{at} {text}", "kept": "{at} {text} (said)", "missed": "{at} {text} (missed)"},
    "zh": {"open": "{at} {text}", "kept": "{at} {text}（已提醒）", "missed": "{at} {text}（错过了）"},
}
_JOINT: dict[Language, str] = {"en": "; ", "zh": "；"}


def coming_up_within(now: datetime) -> dict[str, datetime]:
    """Return the values of `COMING_UP` at a moment."""
    return {"coming_until": now + _WITHIN, "visiting_since": now - _VISIT}


def coming_up_line(
    rows: Sequence[Mapping[str, Any]], timezone: str, language: Language, count: Callable[[str], int]
) -> str:
    """Return the line, of 60 tokens at most by `count`; empty where nothing was promised."""
    zone = time_zone(timezone)
    items = [
        _ITEM[language][row["state"]].format(
            at=f"{datetime.fromisoformat(row['due_at']).astimezone(zone):%m-%d %H:%M}",
            text=one_line(row["text"])[:_LONGEST],
        )
        for row in rows
        if stands(row)
    ]
    for most in range(len(items), 0, -1):
        line = _LINE[language].format(items=_JOINT[language].join(items[:most]))
        if count(line) <= _MOST_TOKENS or most == 1:
            return line
    return ""
