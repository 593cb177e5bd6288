"""Time zones as callers write them: an IANA name, or an offset such as +08:00."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?")
_LARGEST_OFFSET = timedelta(hours=14)


class BadTimeZone(ValueError):
    """This is neither an IANA time zone nor an offset."""


@lru_cache(maxsize=1024)
def time_zone(name: str) -> tzinfo:
    """The time zone of that name.

    Raises:
        BadTimeZone: there is none.
    """
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset <= _LARGEST_OFFSET:
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadTimeZone(
            f"{name!r} is no time zone; give an IANA name such as Asia/Shanghai, or an offset such as +08:00"
        ) from None


def shows_hour(name: str, now: datetime, hour: int) -> bool:
    """Whether clocks in a time zone show this hour, 0 to 23; False for a name that is none."""
    try:
        return now.astimezone(time_zone(name)).hour == hour
    except BadTimeZone:
        return False
