"""Digests by which words are known again that are kept nowhere: 16 bytes each, of one kind of text."""

import hashlib

_BYTES = 16


def episode_digest(content: str) -> bytes:
    """Return the digest of a written memory."""
    return _digest("episode", content)


def value_digest(field: str, text: str) -> bytes:
    """Return the digest of a value of core memory, in whichever section its field is."""
    return _digest("value", field, text)


def title_digest(title: str) -> bytes:
    """Return the digest of a conversation's title."""
    return _digest("title", title)


def _digest(*parts: str) -> bytes:
    said = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=_BYTES).digest()
