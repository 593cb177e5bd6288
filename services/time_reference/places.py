"""Clocks of other places that a text names: 3pm New York time, 北京时间今晚十点."""

import re
from datetime import tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_ENGLISH = re.compile(r"\b(?P<words>[a-z][a-z']*(?: [a-z][a-z']*){0,5}) time\b")
_CHINESE = {
    **dict.fromkeys(("北京", "中国", "上海"), "Asia/Shanghai"),
    **dict.fromkeys(("东京", "日本"), "Asia/Tokyo"),
    **dict.fromkeys(("首尔", "韩国"), "Asia/Seoul"),
    **dict.fromkeys(("伦敦", "英国"), "Europe/London"),
    **dict.fromkeys(("巴黎", "法国"), "Europe/Paris"),
    **dict.fromkeys(("柏林", "德国"), "Europe/Berlin"),
    **dict.fromkeys(("台北", "台湾"), "Asia/Taipei"),
    **{
        "香港": "Asia/Hong_Kong",
        "新加坡": "Asia/Singapore",
        "纽约": "America/New_York",
        "洛杉矶": "America/Los_Angeles",
    },
    **{"悉尼": "Australia/Sydney", "莫斯科": "Europe/Moscow", "迪拜": "Asia/Dubai", "温哥华": "America/Vancouver"},
    **{"多伦多": "America/Toronto", "曼谷": "Asia/Bangkok", "芝加哥": "America/Chicago"},
}
_AMERICAN = frozenset(
    f"America/{name}"
    for name in ("New_York", "Detroit", "Chicago", "Denver", "Phoenix", "Los_Angeles", "Anchorage", "Boise")
) | {"Pacific/Honolulu"}
_IN_CHINESE = re.compile(rf"(?P<place>{'|'.join(_CHINESE)})时间")


def on_its_clock(text: str, zone: tzinfo) -> tuple[str, tzinfo]:
    """Return a text with the words for a place blotted out, and the time zone of its times; without such words
    the zone that is given. Only places of the time zone database are known in English."""
    if found := _IN_CHINESE.search(text):
        return _without(text, *found.span()), ZoneInfo(_CHINESE[found["place"]])
    for found in _ENGLISH.finditer(text):
        words = found["words"].split(" ")
        for first in range(len(words)):
            place = " ".join(words[first:])
            if name := _places().get(place):
                return _without(text, found.end("words") - len(place), found.end()), ZoneInfo(name)
    return text, zone


def _without(text: str, begin: int, stop: int) -> str:
    return text[:begin] + " " * (stop - begin) + text[stop:]


@cache
def _places() -> dict[str, str]:
    """Return the names of time zones by their last part, such as new york."""
    names = sorted(available_timezones(), key=lambda name: name.count("/"), reverse=True)
    return {name.rpartition("/")[2].replace("_", " ").lower(): name for name in names}


def is_american(timezone: str) -> bool:
    """Return whether a time zone is one of the United States."""
    return timezone in _AMERICAN
