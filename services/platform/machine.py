"""The locale of the machine."""

import os
import re
from collections.abc import Mapping

_LOCALE = re.compile(r"([A-Za-z]{2,8})(?:_([A-Za-z0-9]{1,8}))?(?:[.@].*)?")


def machine_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the machine's locale for messages as a BCP 47 tag such as `zh-CN`; None if it has none, or `C`."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(variable):
            match = _LOCALE.fullmatch(value)
            if match is None or match[1] == "POSIX":  # `C` is too short to match
                return None
            return "-".join(part for part in match.groups() if part)
    return None
