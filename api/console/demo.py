"""The demo: a month of conversations of a made-up user, up to yesterday, as lines of an import."""

import tomllib
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson

_FILE = Path(__file__).with_name("demo.toml")
_ANSWERS_AFTER = timedelta(seconds=9)
_GOES_ON_AFTER = timedelta(minutes=2)

DEMO_USER = "demo:lin"
"""User of the demo: erasing this user removes all of it."""


def demo_lines(now: datetime) -> bytes:
    """Return the demo as JSON Lines; the month ends the day before `now`, which has a time zone."""
    return b"\n".join(map(orjson.dumps, _lines(tomllib.loads(_FILE.read_text("utf-8")), now)))


def _lines(demo: dict[str, Any], now: datetime) -> Iterator[dict[str, Any]]:
    zone = ZoneInfo(demo["timezone"])
    today = now.astimezone(zone).date()

    def at(days_ago: int, clock: str) -> datetime:
        return datetime.combine(today - timedelta(days=days_ago), time.fromisoformat(clock), zone)

    begun = at(30, "09:00").isoformat()
    yield {
        "kind": "user",
        "user_id": DEMO_USER,
        "timezone": demo["timezone"],
        "locale": "en",
        "display_name": demo["name"],
        "created_at": begun,
    }
    for conversation in demo["conversation"]:
        session = f"demo-{conversation['id']}"
        moment = at(conversation["days_ago"], conversation["at"])
        yield {
            "kind": "session",
            "user_id": DEMO_USER,
            "session_id": session,
            "expert": "default",
            "title": conversation["title"],
            "created_at": moment.isoformat(),
        }
        for place, said in enumerate(conversation["said"]):
            yield {
                "user_id": DEMO_USER,
                "session_id": session,
                "role": "assistant" if place % 2 else "user",
                "content": said,
                "created_at": moment.isoformat(),
                "external_id": f"{session}-{place}",
            }
            moment += _GOES_ON_AFTER if place % 2 else _ANSWERS_AFTER
    for section, content in demo["core_memory"].items():
        yield {
            "kind": "core_memory",
            "user_id": DEMO_USER,
            "expert": "default",
            "section": section,
            "content": content,
            "updated_at": at(5, "12:00").isoformat(),
        }
    for memory in demo["memory"]:
        yield {
            "kind": "episode",
            "user_id": DEMO_USER,
            "expert": "default",
            "session_id": None,
            "episode_type": memory["type"],
            "content": memory["text"],
            "importance": 0.7,
            "origin": "derived",
            "created_at": at(memory["days_ago"], "23:30").isoformat(),
            "sources": [],
        }
