"""`get_current_time`: what time it is somewhere."""

from datetime import datetime

from langchain_core.tools import ToolException, tool

from services.time_reference.zones import BadTimeZone, time_zone
from services.tools.registry import RegisteredTool


@tool
def get_current_time(timezone: str) -> str:
    """Tell the current date, time and weekday in a time zone (现在几点 今天几号 星期几 时间 日期).

    Args:
        timezone: IANA name such as Asia/Shanghai or Europe/Berlin, or an offset such as +08:00.
    """
    try:
        now = datetime.now(time_zone(timezone))
    except BadTimeZone as error:
        raise ToolException(str(error)) from error
    return now.strftime("%Y-%m-%d %H:%M:%S %A, UTC%z")


TOOL = RegisteredTool(get_current_time, timeout_s=2.0)
