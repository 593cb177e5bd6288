"""Detect the language of a text: Chinese or English."""

import re
from collections.abc import Iterable
from typing import Literal

from services.text.caches import text_cache

Language = Literal["zh", "en"]

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")
_SHORT = 500


def language_of(texts: Iterable[str]) -> Language:
    """Chinese where there are at least half as many Chinese characters as words in other scripts."""
    chinese = words = 0
    for text in texts:
        more_chinese, more_words = (_remembered_count if len(text) <= _SHORT else _remembered_long_count)(text)
        chinese += more_chinese
        words += more_words
    return "zh" if chinese > 0 and chinese * 2 >= words else "en"


def _count(text: str) -> tuple[int, int]:
    """Chinese characters and words in other scripts."""
    return len(_CHINESE.findall(text)), len(_WORD.findall(text))


# Many readers of a message in a turn ask for its language.
_remembered_count = text_cache(512)(_count)
_remembered_long_count = text_cache(16)(_count)
