"""Digests of messages, by which a message that a client sends again is known.

Clients change little things of what they show: spaces at the ends, the form of composed characters, folded blocks
with an answer's reasoning. None of that makes another message.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

Role = Literal["user", "assistant"]

_BYTES = 16
_FOLDED = re.compile(r"<details\b[^>]*>.*?</details>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def message_digest(role: Role, content: str, images: Iterable[str] = ()) -> bytes:
    """The digest of a message: 16 bytes over its role, its text without what clients change, and its images."""
    text = content
    if role == "assistant" and "<" in text:
        text = _THOUGHT.sub("", _FOLDED.sub("", text))
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    digest = hashlib.blake2b(f"{role}\0{text.strip()}".encode("utf-8", "surrogatepass"), digest_size=_BYTES)
    for image in images:
        digest.update(b"\0" + hashlib.blake2b(image.encode(), digest_size=_BYTES).digest())
    return digest.digest()
