"""Text in the form that PostgreSQL accepts."""

import re

_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Remove what PostgreSQL rejects in text: NUL and lone surrogates."""
    return _NO_TEXT.sub("", text)
