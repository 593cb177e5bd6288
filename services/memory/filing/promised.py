"""Promises that filing finds in a user's words: what, when, and the words that ask; checked like facts."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from services.memory.core.blocks import Owner
from services.memory.filing.answer import LONGEST_TEXT, FilingOperation
from services.memory.filing.checks import Evidence, check
from services.memory.filing.prompt import Said
from services.memory.reading.words import Words
from services.platform.connections import Connection
from services.text.storable import storable

_MOST = 5
"""Maximum number of promises that are read from an answer."""


@dataclass(frozen=True)
class AskedPromise:
    """Something of which the user asks, in words of their own, to be reminded or asked."""

    text: str
    when: str
    """The user's words that say when."""
    quote: str
    """The user's words that ask for it."""
    source: str
    """Short id of the message that contains the request."""


MakePromises = Callable[[Connection, Owner, Sequence[tuple[AskedPromise, Said]]], Awaitable[Sequence[UUID]]]
"""Makes promises in the caller's transaction, except for those that exist already; returns the operations."""


def asked_promises(given: Any, evidence: Evidence) -> Iterator[AskedPromise]:
    """Yield the promises of an answer that rest on the user's own words, checked as facts are; all others are
    dropped. Every word of their `when` must stand in the message too, so a time that the model worked out is not
    accepted."""
    for each in given[:_MOST] if isinstance(given, list) else ():
        named = each if isinstance(each, Mapping) else {}
        text, when, quote = (
            " ".join(storable(str(named.get(name) or "")).split()) for name in ("text", "when", "quote")
        )
        if not (text and when and quote) or len(text) > LONGEST_TEXT:
            continue
        found = check(FilingOperation("add", quote, text), evidence)
        said = evidence.messages.get(found.source, "")
        if found.verdict == "do" and not Words.of(when).without(Words.of(said)).count:
            yield AskedPromise(text, when, found.operation.quote, found.source)
