"""Messages before they are stored: tokens, images, titles, and digests for recognising resent ones."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Literal

from services.llm.token_estimates import MESSAGE_OVERHEAD, count_tokens

Role = Literal["user", "assistant"]

_BYTES = 16
_FOLDED = re.compile(r"<details\b[^>]*>.*?</details>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""Clients change details of messages: surrounding spaces, Unicode composition, folded blocks with an answer's
reasoning. The message remains the same."""


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
    """Remove NUL characters: models emit them and PostgreSQL cannot store them."""
    return text.replace("\x00", "")


def message_digest(role: Role, content: str, images: Iterable[str] = ()) -> bytes:
    """Return the digest of a message: 16 bytes over its role, its normalised text, and its images."""
    text = content
    if role == "assistant" and "<" in text:
        text = _THOUGHT.sub("", _FOLDED.sub("", text))
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    digest = hashlib.blake2b(f"{role}\0{text.strip()}".encode("utf-8", "surrogatepass"), digest_size=_BYTES)
    for image in images:
        digest.update(b"\0" + hashlib.blake2b(image.encode(), digest_size=_BYTES).digest())
    return digest.digest()
