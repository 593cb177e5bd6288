"""The words of a memory command: its target, what holds instead, and what the message says beside them."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from services.memory.commands.clauses import (
    clauses_of,
    not_of_commands,
    spans_of_commands,
)
from services.memory.commands.features import Token, tokens
from services.memory.commands.model import Part
from services.memory.commands.text import folded, masked
from services.text.sentences import Span
from services.text.tokenizer import informative_terms

EDGES = " ,，:：;；、—–-.。!！“”\"'「」\n"
_WORD = 4
"""Characters of a long Chinese word."""
_LINKS = frozenset(("to", "in", "at", "on", "is", "as", "i'm", "he's", "she's", "the", "a", "an", *"了成为是在"))
_BESIDE_VALUE = frozenset(("change", "just_now", "this", "wrong", "said", "ask", "you"))
_BRIDGED = 3
"""Characters between two parts of a target that belong to it."""


def words_of_part(
    message: str, found: Sequence[Token], parts: Sequence[Part], wanted: Part, *, last: bool = False
) -> str:
    """The words of a part, from the message itself: of what stands apart all, or only the last."""
    spans: list[Span] = []
    for span in _runs(found, parts, wanted):
        if spans and span.start - spans[-1].end <= _BRIDGED:
            spans[-1] = Span(spans[-1].start, span.end)
        else:
            spans.append(span)
    whole = [_whole_words(message, span) for span in (spans[-1:] if last else spans)]
    return " ".join(message[span.start : span.end] for span in whole).strip(EDGES)


def _whole_words(message: str, span: Span) -> Span:
    """A part of a text with the whole of the Chinese words at its ends."""
    around = Span(max(span.start - _WORD, 0), min(span.end + _WORD, len(message)))
    near = folded(message)[around.start : around.end]
    start, end = span.start, span.end
    for word in informative_terms(near):
        if len(word) > 1 and not word.isascii():
            for found in re.finditer(re.escape(word), near):
                left, right = around.start + found.start(), around.start + found.end()
                if left < span.start < right:
                    start = min(start, left)
                if left < span.end < right:
                    end = max(end, right)
    return Span(start, end)


def replacement_of(message: str, found: Sequence[Token], parts: Sequence[Part]) -> str:
    """What holds instead; beside an old value, what the only other clause with content says."""
    value = _trimmed(words_of_part(message, found, parts, "replacement", last=True))
    if value or "target" not in parts:
        return value
    old = {token.start for token, part in zip(found, parts, strict=True) if part == "target"}
    others = [
        clause
        for clause in clauses_of(found)
        if old.isdisjoint(token.start for token in clause) and any(not token.classes for token in clause)
    ]
    return _trimmed(message[others[0][0].start : others[0][-1].end]) if len(others) == 1 else ""


def stated_behind(message: str, found: Sequence[Token]) -> str:
    """What stands behind the words of a command, if it states something; “the olives” alone does not."""
    own = not_of_commands(found)
    said = message[own[0].start : found[-1].end].strip(EDGES) if own else ""
    return said if len(informative_terms(said)) > 1 else ""


def _trimmed(value: str) -> str:
    """A new value without the words at its ends that say how it came to hold: “now”, “switched to”."""
    found = tokens(masked(folded(value)))
    first, last = 0, len(found)
    while first < last and _is_beside(found[first]):
        first += 1
    while last > first and _is_beside(found[last - 1]):
        last -= 1
    return value[found[first].start : found[last - 1].end] if first < last else value


def _is_beside(token: Token) -> bool:
    return token.is_mark or token.text in _LINKS or not _BESIDE_VALUE.isdisjoint(token.classes)


def _runs(found: Sequence[Token], parts: Sequence[Part], wanted: Part) -> Iterator[Span]:
    for part, pairs in groupby(zip(parts, found, strict=True), key=lambda pair: pair[0]):
        if part == wanted:
            run = [token for _, token in pairs]
            yield Span(run[0].start, run[-1].end)


def about_of(message: str, found: Sequence[Token], parts: Sequence[Part], kept: Sequence[Span]) -> str:
    """The words of a message that neither make it a command nor say what holds instead or is to stay."""
    replaced = [
        Span(token.start, token.end) for token, part in zip(found, parts, strict=True) if part == "replacement"
    ]
    return blanked(message, [*spans_of_commands(found), *replaced, *kept])


def blanked(text: str, spans: Sequence[Span]) -> str:
    """A text with spaces in these places."""
    left = list(text)
    for span in spans:
        left[span.start : span.end] = " " * (span.end - span.start)
    return " ".join("".join(left).split())


def words_within(message: str, spans: Sequence[Span]) -> str:
    """The texts of these places, joined."""
    return " ".join(message[span.start : span.end].strip() for span in spans).strip(EDGES)


def without(message: str, spans: Sequence[Span]) -> str:
    """A text without these places."""
    rest, place = [], 0
    for span in spans:
        rest.append(message[place : span.start])
        place = span.end
    rest.append(message[place:])
    return " ".join(part.strip(EDGES) for part in rest if part.strip(EDGES))
