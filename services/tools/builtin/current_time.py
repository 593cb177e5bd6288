"""`get_current_time`: the time in a place."""

import re
from datetime import datetime
from typing import Any

from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime

from services.time_reference.local_days import BadTimeZone, time_zone
from services.tools.places import zone_of
from services.tools.tool import QuickMatch, RegisteredTool
from state.turn import OpenTurn

_NOW_ZH = "(?:现在|当前|目前|此刻|这会儿)"
_HERE_ZH = "(?P<place>[\u3400-\u9fff]{2,8}?)"
_CLOCK_ZH = "(?:几点钟?|几点几分|什么时间|啥时间)"
_DAY_ZH = "(?:几月)?(?:几号|几日|多少号)|星期几|周几|礼拜几"
_NOW_EN = "(?: (?:right )?now| currently| at the moment)?"
_HERE_EN = r"(?P<place>[a-z][a-z' -]{1,40}?)"

_QUESTIONS = (
    f"{_NOW_ZH}(?:的?时间)?是?{_CLOCK_ZH}了?吗?",
    f"{_CLOCK_ZH}了吗?",
    f"{_NOW_ZH}的?(?:日期和?)?时间(?:是多少|是什么)?",
    f"(?:{_NOW_ZH}是?)?{_HERE_ZH}(?:时间|那边|当地时间)?的?{_NOW_ZH}?的?(?:时间)?是?{_CLOCK_ZH}了?吗?",
    f"{_HERE_ZH}{_NOW_ZH}的?时间(?:是多少|是什么)?",
    f"(?:今天|今日|今儿|{_NOW_ZH})是?(?:{_DAY_ZH})(?:[,、和 ]*(?:{_DAY_ZH}))?了?吗?",
    "(?:今天|今日)的?日期(?:是多少|是什么|是几号)?",
    f"what time (?:is it|it is){_NOW_EN}(?: in {_HERE_EN})?{_NOW_EN}",
    f"what(?:'s| is) the (?:current )?time{_NOW_EN}(?: in {_HERE_EN})?{_NOW_EN}",
    f"(?:the )?current (?:date and )?time(?: in {_HERE_EN})?",
    f"(?:the )?time in {_HERE_EN}{_NOW_EN}",
    "(?:what|which) (?:day|date|weekday|day of the week) (?:is it|it is|is today)(?: today| now)?",
    "today's date",
    "what(?:'s| is) (?:today's date|the (?:current )?date(?: today)?|the day today)",
)


def _zone(match: re.Match[str]) -> list[dict[str, Any]]:
    """The zone of the named city if it is known; without a city, the user's zone."""
    place = match.groupdict().get("place")
    if not place:
        return [{}]
    zone = zone_of(place)
    return [{"timezone": zone}] if zone else []


@tool
def get_current_time(runtime: ToolRuntime[OpenTurn], timezone: str | None = None) -> str:
    """Tell the current date, time and weekday.

    Args:
        timezone: IANA name such as Europe/Berlin, or an offset such as +08:00; leave it out for the
            user's own time zone.
    """
    name = timezone or runtime.context.timezone
    try:
        now = datetime.now(time_zone(name))
    except BadTimeZone as error:
        raise ToolException(str(error)) from error
    return f"{now:%Y-%m-%d %H:%M:%S} {now:%A} ({name})"


TOOL = RegisteredTool(
    get_current_time, timeout_s=2.0, offered=False, quick=QuickMatch(_QUESTIONS, _zone), priority=10
)
