"""Limits of core memory: names of sections, and how large and how deep their content may be."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from services.errors import InvalidInput
from services.memory.core.items import canonical
from services.text.language import Language

MAX_SECTION_BYTES = 4096
"""Bytes of a section's content as compact JSON in UTF-8."""
MAX_SECTIONS = 16
SECTION_PATTERN = r"^[A-Za-z0-9_]{1,64}$"
MAX_DEPTH = 8
MAX_VALUES = 300
_MAX_KEY_CHARACTERS = 128
_LARGEST_INTEGER = 2**53
"""JSON readers keep integers exact up to here."""

FIELD_LABELS: dict[Language, Mapping[str, str]] = {
    "en": {},
    "zh": {
        "age": "年龄",
        "allergies": "过敏",
        "birthday": "生日",
        "current_intent": "目前打算",
        "dates": "日期",
        "diet": "饮食",
        "events": "决定和结果",
        "facts": "其他",
        "family": "家人",
        "habits": "习惯",
        "health": "健康",
        "hobbies": "爱好",
        "home": "住处",
        "languages": "语言",
        "name": "姓名",
        "people": "身边的人",
        "pets": "宠物",
        "plans": "计划",
        "possessions": "物品",
        "preferences": "偏好",
        "preferred_name": "称呼",
        "studies": "学业",
        "style": "风格",
        "tone": "语气",
        "wishes": "一贯的要求",
        "work": "工作",
    },
}
"""Labels of fields in each language; other fields keep their names."""

FIELD_STATEMENTS: Mapping[str, str] = {
    "address": "I live at 我住在",
    "age": "I am years old 我岁",
    "allergies": "I am allergic to 我对过敏",
    "birthday": "I was born on 我出生于",
    "diet": "I eat 我吃",
    "employer": "I work at 我在工作",
    "home": "I live in 我住在",
    "hometown": "I come from 我来自",
    "job": "I work as 我的工作是",
    "languages": "I speak 我说",
    "name": "I am called 我的名字叫",
    "pets": "I have 我养",
    "school": "I go to 我上学",
    "studies": "I study 我学",
    "work": "I work at 我工作",
}
"""How a user states the value of a field in each language, up to the value itself."""

_SECTION = re.compile(SECTION_PATTERN, re.ASCII)


def check_section(section: str) -> None:
    """Refuse an invalid name of a section. Raises `InvalidInput` unless it is 1 to 64 letters, digits and
    underscores."""
    if not _SECTION.fullmatch(section):
        raise InvalidInput("section", "is 1 to 64 letters, digits and underscores")


def check_values(content: Mapping[str, Any]) -> None:
    """Refuse a content, or a patch, that cannot be stored as it is. Raises `InvalidInput` if it is too deep,
    has too many values, too long a key, a NUL, a lone surrogate, or a number that JSON cannot keep."""
    for count, (value, depth) in enumerate(_values(content), 1):
        if depth > MAX_DEPTH:
            raise InvalidInput("content", f"is nested deeper than {MAX_DEPTH} levels")
        if count > MAX_VALUES:
            raise InvalidInput("content", f"has more than {MAX_VALUES} keys and items")
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput("content", "holds a number that is not finite")
        elif isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise InvalidInput("content", "holds an integer beyond 2^53; write it as a text")


def check_size(section: str, content: Mapping[str, Any]) -> None:
    """Refuse a section that would be too large. Raises `InvalidInput` if its JSON is over the limit."""
    check_values(content)
    size = len(canonical(content).encode())
    if size > MAX_SECTION_BYTES:
        raise InvalidInput(
            "content", f"the section {section} would have {size} bytes; at most {MAX_SECTION_BYTES} are accepted"
        )


def _values(content: Any, depth: int = 1) -> Iterator[tuple[Any, int]]:
    """Yield every value with its depth, down to the depth that is refused."""
    if depth > MAX_DEPTH + 1:
        return
    if isinstance(content, Mapping):
        for key, value in content.items():
            if len(key) > _MAX_KEY_CHARACTERS:
                raise InvalidInput("content", f"has a key of more than {_MAX_KEY_CHARACTERS} characters")
            _check_text(key)
            yield value, depth
            yield from _values(value, depth + 1)
    elif isinstance(content, list):
        for value in content:
            yield value, depth
            yield from _values(value, depth + 1)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise InvalidInput("content", "holds the character NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("content", "holds half of a character (a lone surrogate)") from None
