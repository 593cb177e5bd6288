"""The encoding of the file `.env`, which editors and shells of Windows write as they like."""

import codecs
from pathlib import Path

from services.errors import ConfigurationError

_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


def encoding_of(file: Path) -> str:
    """Return how the file is encoded: by its mark, else UTF-8, else GB18030.

    Raises:
        ConfigurationError: it is none of these.
    """
    try:
        content = file.read_bytes()
    except OSError:
        return "utf-8"
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return encoding
    for encoding in ("utf-8", "gb18030"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return encoding
    raise ConfigurationError(f"{file} is not text in UTF-8, UTF-16 with its mark, or GB18030; save it as UTF-8.")
