"""The terms under which a message or a memory is indexed."""

from collections.abc import Sequence

from services.text.caches import text_cache
from services.text.tokenizer import indexed_text, terms

VERSION = "3"
"""Version of what is indexed of a text."""


@text_cache(256)
def indexed_terms(text: str, speaker: str | None) -> Sequence[str]:
    """The terms of a message or a memory, and of the name of its speaker; none where it has no word."""
    # A working set and, some seconds later, the index need those of what was just said.
    return tuple(terms(indexed_text(speaker or "", text)))
