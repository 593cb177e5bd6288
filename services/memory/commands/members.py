"""Members of a list that are named: “drop HelloFresh” of “Spotify, the Economist and HelloFresh”. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.text.mentions import sentences
from services.text.tokenizer import informative_terms, simplified

_BETWEEN = re.compile(
    r",? (?:and|or|&) |, (?!(?:and|or|&) )|[、，]|(?:和|跟|与|以及|还有|及)(?=[^，。、]{1,10})", re.IGNORECASE
)
_JOINS = re.compile(r" (?:and|or|&) |[、和跟与及]|以及|还有", re.IGNORECASE)
"""Where nothing joins its last members, what commas part may be clauses."""
_LINKS = re.compile(
    r"\b(?:is|are|was|were|am|be|in|at|on|to|with|for|i|i'm|he|she|they|we|it|works?|lives?|hates?|likes?|loves?)\b"
    r"|[我你他她它是在有去住做]",
    re.IGNORECASE,
)
"""A member with such a word is a clause."""
_ARTICLE = re.compile(r"^(?:the|a|an|my|our|some)\s+", re.IGNORECASE)
_MOST_WORDS, _MOST_CHARACTERS = 4, 8
_READ = 3
"""Words of the last member: a sentence goes on behind it."""
_END = ".!?。！？~～ \n"


@dataclass(frozen=True)
class Shortened:
    """A text with members of a list left out."""

    text: str
    gone: str
    """The members."""


@dataclass(frozen=True)
class _Member:
    """A member of a list, with the end of the one before it and the start of the next."""

    start: int
    end: int
    before: int
    after: int

    def left_out(self, statement: str) -> str:
        """A statement without it, and without the mark that parts it from the others."""
        if self.before < self.start:
            return statement[: self.before] + statement[self.end :]
        return statement[: self.start] + statement[self.after :]


def without_named(text: str, named: str, kept: str) -> Shortened | None:
    """A text without the members of its list that some words name; None where they name none, or all of them.

    Words in `kept` name nothing.
    """
    words = informative_terms(simplified(named)) - informative_terms(simplified(kept))
    for statement in sentences(text):
        if members := list(_named(statement, words, simplified(named).casefold())):
            left = statement
            for member in reversed(members):
                left = member.left_out(left)
            gone = ", ".join(statement[member.start : member.end] for member in members)
            return Shortened(text.replace(statement, left, 1), gone)
    return None


def _named(statement: str, words: frozenset[str], named: str) -> Iterator[_Member]:
    """The members that are named, in order; none unless another one is left."""
    breaks = list(_BETWEEN.finditer(statement))
    if not breaks or not _JOINS.search(statement):
        return
    edges = [0, *(place for found in breaks for place in found.span()), len(statement.rstrip(_END))]
    members = list(zip(edges[::2], edges[1::2], strict=True))
    begins_last = " ".join(statement[slice(*members[-1])].split()[:_READ])
    if any(map(_is_clause, (*(statement[start:end] for start, end in members[1:-1]), begins_last))):
        return
    found = []
    for number, (start, end) in enumerate(members):
        is_first, is_last = number == 0, number == len(members) - 1
        if is_first or is_last:
            span = _at_the_edge(statement[start:end], words, named, at_end=is_first)
        else:
            own = informative_terms(simplified(statement[start:end]))
            span = (0, end - start) if own and own <= words else None
        if span:
            place = start + span[0], start + span[1]
            before = place[0] if is_first else members[number - 1][1]
            found.append(_Member(*place, before, place[1] if is_last else members[number + 1][0]))
    if len(found) < len(members):
        yield from found


def _at_the_edge(part: str, words: frozenset[str], named: str, *, at_end: bool) -> tuple[int, int] | None:
    """Where a named member stands in the first part of a list, which ends with it, or in the last."""
    if not part.isascii():
        folded = simplified(part).casefold()
        for length in range(min(len(part), _MOST_CHARACTERS), 1, -1):
            own = folded[-length:] if at_end else folded[:length]
            if own in named and informative_terms(own):
                return (len(part) - length, len(part)) if at_end else (0, length)
        return None
    tokens = [found.span() for found in re.finditer(r"\S+", part)]
    for length in range(min(len(tokens), _MOST_WORDS), 0, -1):
        run = tokens[-length:] if at_end else tokens[:length]
        start, end = run[0][0], run[-1][1]
        told = informative_terms(part[start:end])
        if told and told <= words and not _LINKS.search(part[start:end]):
            return start, end
    return None


def _is_clause(member: str) -> bool:
    plain = _ARTICLE.sub("", member.strip())
    is_long = len(plain.split()) > _MOST_WORDS if plain.isascii() else len(plain) > 2 * _MOST_CHARACTERS
    return is_long or not plain or _LINKS.search(plain) is not None
