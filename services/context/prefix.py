"""How much of a prompt begins, byte for byte, as the one of the turn before.

A provider keeps what it has worked out for the beginning of a prompt, and bills it at a fraction when the next
prompt begins with the same bytes. What is kept of a prompt are digests at the borders of its sections.
"""

import hashlib
from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage

from state.prompt import PrefixMark, SharedPrefix

_DIGEST_BYTES = 12

Section = tuple[str, Sequence[tuple[BaseMessage, int]]]
"""Name of a section, and its messages with their tokens."""


def mark_prefix(
    sections: Iterable[Section], before: Sequence[PrefixMark]
) -> tuple[list[PrefixMark], SharedPrefix]:
    """Take the digests of a prompt's stable sections, and compare them with those of the prompt before."""
    known = {mark["messages"]: mark["digest"] for mark in before}
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    marks: list[PrefixMark] = []
    count = tokens = shared = 0
    for name, messages in sections:
        for message, size in messages:
            digest.update(f"{message.type}\0{message.content!r}\0".encode())
            count += 1
            tokens += size
            if known.get(count) == digest.hexdigest():
                shared = tokens
        marks.append(PrefixMark(section=name, messages=count, digest=digest.hexdigest()))
    return marks, SharedPrefix(tokens=shared, share=round(shared / tokens, 4) if tokens else 0.0)
