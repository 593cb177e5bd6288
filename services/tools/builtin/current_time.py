"""`get_current_time`: what time it is somewhere."""

from datetime import datetime

from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime

from services.time_reference.zones import BadTimeZone, time_zone
from services.tools.tool import RegisteredTool
from state.context import TurnContext


@tool
def get_current_time(runtime: ToolRuntime[TurnContext], timezone: str | None = None) -> str:
    """Tell the current date, time and weekday (现在几点 今天几号 星期几 时间 日期).

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


TOOL = RegisteredTool(get_current_time, timeout_s=2.0)
