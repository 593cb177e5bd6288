"""Digests by which words are known again that are kept nowhere."""

import hashlib
from typing import Literal

_BYTES = 16


def word_digest(kind: Literal["episode", "value", "title"], *said: str) -> bytes:
    """Return the digest of a written memory, of a value of core memory with its field, or of a title."""
    text = "\0".join((kind, *said)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_BYTES).digest()
