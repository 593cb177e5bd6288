"""The time zone and the locale of the machine."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCALTIME = Path("/etc/localtime")
_TIMEZONE = Path("/etc/timezone")
_LOCALE = re.compile(r"([A-Za-z]{2,8})(?:_([A-Za-z0-9]{1,8}))?(?:[.@].*)?")


def machine_timezone(
    environment: Mapping[str, str] = os.environ, localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE
) -> str:
    """Return the machine's IANA time zone, from `TZ`, else from its files; `UTC` if none names one."""
    for name in _zone_names(environment, localtime, timezone):
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError, ValueError):
            continue
        return name
    return "UTC"


def _zone_names(environment: Mapping[str, str], localtime: Path, timezone: Path) -> Iterator[str]:
    if given := environment.get("TZ", "").lstrip(":"):
        yield given
    try:
        target = str(localtime.resolve())
        if "/zoneinfo/" in target:
            yield target.partition("/zoneinfo/")[2].removeprefix("posix/")
        yield timezone.read_text().strip()
    except OSError:
        return


def machine_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the machine's locale for messages as a BCP 47 tag such as `zh-CN`; None if it has none, or `C`."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(variable):
            match = _LOCALE.fullmatch(value)
            if match is None or match[1] == "POSIX":  # `C` is too short to match
                return None
            return "-".join(part for part in match.groups() if part)
    return None
