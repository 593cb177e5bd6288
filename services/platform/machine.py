"""The machine's locale, and its time zone as an IANA name that matches the offset of the C library.

Names can be wrong: a container has its own `/etc/timezone` beside the host's `/etc/localtime`, and `TZ` may be a
rule without a name, such as `CST-8`.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCALE = re.compile(r"([A-Za-z]{2,8})(?:_([A-Za-z0-9]{1,8}))?(?:[.@].*)?")
_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_FOLDER = "/zoneinfo/"
_YEAR_S = 366 * 86_400
_SAMPLES = 12
_USUAL = ("Asia/Shanghai", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles")
"""Zones that are preferred among zones with equal offsets."""

Offset = Callable[[float], float]
"""Function from a moment to the seconds east of Greenwich."""


def machine_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the machine's locale for messages as a BCP 47 tag such as `zh-CN`; None if it is missing or `C`."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(variable):
            match = _LOCALE.fullmatch(value)
            if match is None or match[1] == "POSIX":  # `C` is too short to match
                return None
            return "-".join(part for part in match.groups() if part)
    return None


def c_library_offset(moment: float) -> float:
    """Return the offset that the C library uses."""
    return time.localtime(moment).tm_gmtoff


def machine_timezone(
    environment: Mapping[str, str] = os.environ,
    localtime: Path = _LOCALTIME,
    timezone: Path = _TIMEZONE,
    offset: Offset = c_library_offset,
) -> str:
    """Return the machine's time zone: an IANA name, or an offset if no name matches. A name in `TZ` or a file
    is used if its offsets are those of the C library. A name that `TZ` states plainly is always used."""
    for name in _names(environment, localtime, timezone):
        if (zone := _zone(name)) is not None and _agrees(_offset_of(zone), offset):
            return name
    given = _name_in(environment.get("TZ", ""))
    if _zone(given) is not None:
        return given
    return _name_for(offset, many_years=not environment.get("TZ"))


def zone_doubt(
    environment: Mapping[str, str] = os.environ, offset: Offset = c_library_offset, chosen: str | None = None
) -> str | None:
    """Return a warning about the machine's time zone, for the operator; None = all is well."""
    chosen = chosen or machine_timezone(environment, offset=offset)
    given = environment.get("TZ", "").lstrip(":")
    if given and offset(time.time()) == 0 and _is_unknown(given):
        return f"TZ={given} names no time zone that this machine knows; new users get {chosen}"
    zone = _zone(chosen)
    if zone is not None and not _agrees(_offset_of(zone), offset, [time.time()]):
        return f"new users get {chosen}, which is not the time of this machine"
    return None


def _is_unknown(given: str) -> bool:
    """Return whether a text looks like a zone's name but is unknown."""
    return "/" in given and not given.startswith("/") and _zone(given) is None


def _names(environment: Mapping[str, str], localtime: Path, timezone: Path) -> Iterator[str]:
    if given := _name_in(environment.get("TZ", "")):
        yield given  # the C library then reads no file
        return
    try:
        yield _name_in(str(localtime.resolve()))
        yield timezone.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return


def _name_in(text: str) -> str:
    """Return the name in what people write: after a colon, in quotes, or in the path of its file."""
    bare = text.strip().lstrip(":").strip("'\"")
    return bare.rpartition(_FOLDER)[2].removeprefix("posix/")


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def _offset_of(zone: ZoneInfo) -> Offset:
    return lambda moment: (datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset() or timedelta()).seconds


def _agrees(one: Offset, other: Offset, moments: Sequence[float] = ()) -> bool:
    day_s = 86_400
    return all(one(moment) % day_s == other(moment) % day_s for moment in moments or _this_year())


def _this_year() -> list[float]:
    now = time.time()
    return [now + _YEAR_S * number / _SAMPLES for number in range(-_SAMPLES // 2, _SAMPLES // 2 + 1)]


@lru_cache(maxsize=1)
def _known() -> list[str]:
    """Return the names of all zones that differ since 1970, the usual ones first."""
    table = (resources.files("tzdata") / "zoneinfo" / "zone1970.tab").read_text("utf-8")
    names = [line.split("\t")[2] for line in table.splitlines() if not line.startswith("#")]
    return [*_USUAL, *(name for name in names if name not in _USUAL)]


def _name_for(offset: Offset, *, many_years: bool) -> str:
    """Return the zone with these offsets, compared over many years for a zone file, over this year for a rule."""
    moments = _this_year()
    offsets = {offset(moment) for moment in moments}
    if many_years:
        moments = [*moments, *(moments[0] - _YEAR_S * number / 4 for number in range(100))]
    if len(offsets) == 1 and not (many_years and any(offset(moment) not in offsets for moment in moments)):
        (seconds,) = offsets
        return _written(seconds)
    for name in _known():
        zone = _zone(name)
        if zone is not None and _agrees(_offset_of(zone), offset, moments):
            return name
    return _written(offset(time.time()))


def _written(seconds: float) -> str:
    if not seconds:
        return "UTC"
    hours, minutes = divmod(int(abs(seconds)) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"
