"""Decode text: UTF-8, UTF-16 with a byte order mark, and GB18030 for Chinese."""

import codecs
import re

from services.knowledge.document import BadDocument

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CHINESE = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef\u2018-\u201d\u2014\u2026]")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_MOSTLY = 0.9
"""Nearly any bytes decode as GB18030; real text in it consists almost only of common Chinese characters."""


def decoded(data: bytes) -> str:
    """Return the text of a file.

    Raises:
        BadDocument: it is binary, or in another encoding.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _checked(_decode(data, "utf-16"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = _decode(data, "gb18030")
        foreign = _NOT_ASCII.findall(text)
        if len(_CHINESE.findall(text)) < _MOSTLY * len(foreign):
            raise BadDocument("is not text in UTF-8, UTF-16 or GB18030") from None
    return _checked(text)


def storable(text: str) -> str:
    """Remove what PostgreSQL rejects in text: NUL and lone surrogates."""
    return _NO_TEXT.sub("", text)


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise BadDocument("is not text in UTF-8, UTF-16 or GB18030") from None


def _checked(text: str) -> str:
    if _CONTROL.search(text):
        raise BadDocument("is binary, not text")
    return text
