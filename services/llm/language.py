"""Which language a text is in, of the two that the service speaks itself."""

import re
from collections.abc import Iterable
from typing import Literal

Language = Literal["zh", "en"]

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")


def language_of(texts: Iterable[str]) -> Language:
    """Chinese where there are at least half as many Chinese characters as words in other scripts."""
    chinese = words = 0
    for text in texts:
        chinese += len(_CHINESE.findall(text))
        words += len(_WORD.findall(text))
    return "zh" if chinese > 0 and chinese * 2 >= words else "en"
