"""Wording that sections share: tags around data, which nothing inside can open or close, and readable values."""

import json
from collections.abc import Sequence
from typing import Any

from services.llm.request_form import TAGS
from services.text.language import Language
from services.text.marks import without_marks

MEMORY = "memory"
"""Around what was said or recorded before."""
DOCUMENTS = "documents"
"""Around passages of knowledge bases."""
APPLICATION = "application"
"""Around the instructions of the client's application."""

WEEKDAYS: dict[Language, Sequence[str]] = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
}
_JOINT: dict[Language, str] = {"en": "; ", "zh": "；"}
_YES: dict[Language, tuple[str, str]] = {"en": ("yes", "no"), "zh": ("是", "否")}


def inert(text: str) -> str:
    """Return the text with nothing that could open or close one of the tags, or end a message."""
    return without_marks(text, TAGS)


def tagged(name: str, text: str) -> str:
    """Return the text between the tags; it must be inert already."""
    return f"<{name}>\n{text}\n</{name}>"


def readable(value: Any, language: Language) -> str:
    """Return a JSON value as people write it, on one line: a line break could imitate a line of the prompt."""
    if isinstance(value, bool):
        return _YES[language][0 if value else 1]
    if isinstance(value, list):
        return _JOINT[language].join(readable(item, language) for item in value)
    if isinstance(value, dict):
        pairs = (f"{readable(key, language)}: {readable(each, language)}" for key, each in sorted(value.items()))
        return ", ".join(pairs)
    text = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return inert("".join(character for character in text if character.isprintable()))
