"""What a message is made of before it is stored."""

from typing import Any

from services.llm.tokens import MESSAGE_OVERHEAD, count_tokens


def message_tokens(content: str) -> int:
    """Estimated tokens of a message in a prompt."""
    return count_tokens(content) + MESSAGE_OVERHEAD


def image_part(image: str) -> dict[str, Any]:
    """An image as a content part of a message."""
    return {"type": "image_url", "image_url": {"url": image}}


def title_of(content: str, longest: int = 80) -> str:
    """The beginning of the first message, on one line."""
    line = " ".join(content.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def without_nul(text: str) -> str:
    """PostgreSQL stores no NUL character, and models emit them."""
    return text.replace("\x00", "")
