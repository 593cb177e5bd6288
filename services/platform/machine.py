"""The locale and the time zone of the machine."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCALE = re.compile(r"([A-Za-z]{2,8})(?:_([A-Za-z0-9]{1,8}))?(?:[.@].*)?")

_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_FOLDER = "/zoneinfo/"
_DAY_S = 86_400
_YEAR_S = 366 * _DAY_S
_SAMPLES = 12

Offset = Callable[[float], float]
"""The seconds east of Greenwich at a moment."""


def machine_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the machine's locale for messages as a BCP 47 tag such as `zh-CN`; None if it has none, or `C`."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(variable):
            match = _LOCALE.fullmatch(value)
            if match is None or match[1] == "POSIX":  # `C` is too short to match
                return None
            return "-".join(part for part in match.groups() if part)
    return None


def c_library_offset(moment: float) -> float:
    """The offset that the C library uses."""
    return time.localtime(moment).tm_gmtoff


def machine_timezone(
    environment: Mapping[str, str] = os.environ,
    localtime: Path = _LOCALTIME,
    timezone: Path = _TIMEZONE,
    offset: Offset = c_library_offset,
) -> str:
    """Return the machine's time zone: the IANA name in `TZ` or of a file that fits the clock, else the offset.

    Names lie: containers bring a `/etc/timezone` of their own beside the host's `/etc/localtime`, and `TZ` may be
    a rule such as `CST-8`, which has no name.
    """
    now = time.time()
    if given := environment.get("TZ"):
        name = _name_in(given)
        return name if _zone(name) else _written(offset(now))
    year = [now + _YEAR_S * number / _SAMPLES for number in range(-_SAMPLES // 2, _SAMPLES // 2 + 1)]
    for name in _names(localtime, timezone):
        if (zone := _zone(name)) and all(_offset_in(zone, each) == offset(each) % _DAY_S for each in year):
            return name
    return _written(offset(now))


def _names(localtime: Path, timezone: Path) -> Iterator[str]:
    try:
        yield _name_in(str(localtime.resolve()))
        yield timezone.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return


def _name_in(text: str) -> str:
    """The name in what people write: behind a colon, in quotes, or as the path of its file."""
    return text.strip("'\": ").rpartition(_FOLDER)[2].removeprefix("posix/")


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def _offset_in(zone: ZoneInfo, moment: float) -> float:
    return (datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset() or timedelta()).seconds


def _written(seconds: float) -> str:
    if not seconds:
        return "UTC"
    hours, minutes = divmod(int(abs(seconds)) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"
