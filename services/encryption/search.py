"""Search by words in what the database cannot read: patterns of LIKE over opened texts."""

import re
from collections.abc import Callable, Sequence

_PART = re.compile(r"\\(.)|([%_])|([^\\%_]+)", re.DOTALL)


def like_any(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return whether a text matches any of some patterns of ILIKE: `%` any characters, `_` one, `\\` escapes."""
    expressions = ["".join(map(_expression, _PART.finditer(pattern))) for pattern in patterns]
    matcher = re.compile("|".join(f"(?:{each})" for each in expressions) or r"(?!)", re.IGNORECASE | re.DOTALL)
    return lambda text: matcher.fullmatch(text) is not None


def _expression(part: "re.Match[str]") -> str:
    escaped, wildcard, plain = part.groups()
    if wildcard:
        return ".*" if wildcard == "%" else "."
    return re.escape(escaped or plain)
