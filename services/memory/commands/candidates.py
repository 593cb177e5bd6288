"""Statements that a command may be about, scored by words, by concepts and by what values look like.

Where no statement shares nearly all words with what the user names (`mentions`), the one is meant that stands out
from all others: "how much I earn" is "I make 74k a year", as long as nothing else comes near.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal
from uuid import UUID

from services.text.concepts import Facet, concepts, facets
from services.text.mentions import (
    AMOUNTS,
    BEINGS,
    clauses_of,
    is_of_kin,
    is_of_speaker,
    pieces_of,
    refers_back,
    statements_of,
    worth_keeping,
)
from services.text.tokenizer import informative_terms, simplified, terms

_SAME_CONCEPT = 0.9
_NARROWER = 0.6
_BROADER = 0.2
_BESIDE = 0.15
_BY_SHAPE = 0.6
_BY_STEM = 0.7
_SHORTEST_STEM = 5
_BY_CHARACTER = 0.5
_OF_KIN = 0.5
"""Factor for a statement about somebody else, where users name only themselves."""
_NOWHERE = 0.5
"""Factor for a word that no statement has, which may be a name for the matter as well as its subject."""
_LEAST = 0.24
_STANDS_OUT = 0.65
"""Share of the best score that the next one may reach at most, unless it is about the same."""
_AS_GOOD = 0.85
_NEARLY_ALL = 0.6
"""From here on a statement is meant whatever else there is."""
_MOST_MEANT = 3
"""Statements that are meant by a concept; more of them are a whole field of the user's life."""
_SMALLEST_STORE = 50

_SHAPES: Mapping[str, str] = {
    "money": r"[$€£¥]\s?\d|\d[\d,.]*\s?(?:k\b|dollars?|euros?|pounds?\b|bucks|grand|yuan|块|元|万|千)"
    r"|[一二三四五六七八九十]+[万千百]",
    "salary": r"\d[\d,.]*\s?k?\s(?:a|per|an) (?:year|month|hour|week)|\bmake \d",
    "measure": r"\d[\d.,]*\s?(?:kg|kilos?|lbs?|pounds|stone|cm|公斤|斤|厘米|千克)",
    "medicine": r"\d+\s?m?g\b|\bmilligrams?\b|毫克",
    "password": r"\b(?=\w*\d)\w{4,}\b",
    "reference": r"\b[\w-]*\d{3,}[\w-]*\b",
    "phone": r"\d[\d -]{6,}",
    "age": r"\b\d{1,3}\b|[\d一二三四五六七八九十]+岁",
    "birthday": r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)\w*\b|[\d一二三四五六七八九十]月",
    "home": r"\b(?:street|road|avenue|lane)\b|小区|路\d|号楼",
    "study": r"school|college|university|小学|中学|大学|幼儿园|高中|初中|年级",
    "health": r"\b(?:diagnos\w*|disease|syndrome|surgery|\w+itis|\w+oma)\b|病|癌|炎|症|梗|手术|确诊",
}
"""Shape of a concept's value, where no word of its statement names the concept."""
_SHAPE = {concept: re.compile(pattern, re.IGNORECASE) for concept, pattern in _SHAPES.items()}


@dataclass(frozen=True)
class Stored:
    """A message or a written memory that may be meant."""

    kind: Literal["message", "episode"]
    id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime


class CandidateScorer:
    """What some words of the user's are about."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.of_kin = is_of_kin(words)
        self.of_speaker = is_of_speaker(words)

    @cached_property
    def facets(self) -> tuple[Facet, ...]:
        """Each thing that they name."""
        return facets(self.words)

    def patterns(self) -> list[str]:
        """Patterns of LIKE, of which whatever shares a word with it matches one."""
        stems = {
            term[:-1] if term.isascii() and len(term) >= _SHORTEST_STEM else term
            for each in self.facets
            for term in each.terms
        }
        return sorted("%" + re.sub(r"([\\%_])", r"\\\1", stem) + "%" for stem in stems if len(stem) > 1)

    def scores(self, statements: Sequence[str], *, by_shape: bool = True) -> list[float]:
        """For each statement the share of what is named, by weight, of which it tells; rare words weigh more."""
        if not self.facets:
            return [0.0] * len(statements)
        told = [_Told(statement) for statement in statements]
        met = [[_met(facet, each, by_shape=by_shape) for facet in self.facets] for each in told]
        size = max(len(statements), _SMALLEST_STORE)
        weights = []
        for place, facet in enumerate(self.facets):
            found = sum(row[place] >= _BY_SHAPE for row in met)
            rare = math.log(1 + (size - found + 0.5) / (found + 0.5))
            weights.append(facet.weight * rare * (1.0 if any(row[place] for row in met) else _NOWHERE))
        whole = sum(weights)
        return [
            sum(weight * share for weight, share in zip(weights, row, strict=True))
            / whole
            * (_OF_KIN if each.of_kin and self.of_speaker and not self.of_kin else 1.0)
            for row, each in zip(met, told, strict=True)
        ]

    def meant(self, statements: Sequence[str]) -> list[int]:
        """The places of the statements that are meant; none where none comes near, or several differ."""
        scores = self.scores(statements)
        best = max(scores, default=0.0)
        if best < _LEAST:
            return []
        chosen = [place for place, score in enumerate(scores) if score >= _AS_GOOD * best]
        texts = {_plain(statements[place]) for place in chosen}
        nearest = max((score for place, score in enumerate(scores) if place not in chosen), default=0.0)
        if best >= _NEARLY_ALL:
            return chosen if len(texts) <= _MOST_MEANT or best > _SAME_CONCEPT else []
        return chosen if len(texts) == 1 and nearest <= _STANDS_OUT * best else []

    def near(self, statements: Sequence[str]) -> list[str]:
        """The statements that may be meant where none stands out, the nearest first."""
        scored = sorted(zip(self.scores(statements), statements, strict=True), key=lambda pair: -pair[0])
        best = scored[0][0] if scored else 0.0
        close = [text for score, text in scored if score >= max(_LEAST, _STANDS_OUT * best)]
        return list(dict.fromkeys(text.strip() for text in close))[:_MOST_MEANT]

    def keeps(self, text: str, sought: "CandidateScorer") -> bool:
        """Whether a text tells as much of this, which is to stay, as of what is to go."""
        own = self.scores([text], by_shape=False)[0]
        return own >= _LEAST and own >= sought.scores([text], by_shape=False)[0]

    def left_of(self, text: str, gone: Sequence[str], kept: "CandidateScorer") -> str:
        """A text without the statements that are meant, and what goes on about them; empty = nothing is left."""
        left: list[str] = []
        follows = False
        for part in statements_of(text):
            if part in gone:
                left.append(self._left_of_statement(part, kept))
                follows = not self._is_of_a_detail
            elif not (follows and refers_back(part)) or kept.keeps(part, self):
                left.append(part)
                follows = False
        return worth_keeping("".join(left))

    def _left_of_statement(self, statement: str, kept: "CandidateScorer") -> str:
        """The pieces between commas that are to stay, or tell of another matter of the user's."""
        if statement.isascii():
            return "".join(piece for piece in pieces_of(statement) if kept.keeps(piece, self))
        clauses = clauses_of(statement)
        scores = self._scores_of_detail(clauses)
        least = max(scores) / 2
        own_matter = len(clauses) > 1 and least > 0 and (self._is_of_a_detail or not self._is_about_somebody)
        return "".join(
            clause
            for clause, score in zip(clauses, scores, strict=True)
            if kept.keeps(clause, self) or (own_matter and score < least and _tells_of_a_matter(clause))
        )

    def _scores_of_detail(self, clauses: Sequence[str]) -> list[float]:
        """For each clause how much it tells of what is named of somebody, and not only of him."""
        detail = [facet for facet in self.facets if BEINGS.isdisjoint(facet.concepts)]
        if not detail or not self._is_of_a_detail:
            return self.scores(clauses)
        return [
            sum(facet.weight * _met(facet, _Told(clause), by_shape=True) for facet in detail) for clause in clauses
        ]

    @property
    def _is_of_a_detail(self) -> bool:
        """Whether it names something of somebody, and not all of them: “my grandmother's address”."""
        return sum(facet.weight == 1.0 for facet in self.facets) > 1

    @property
    def _is_about_somebody(self) -> bool:
        return self.of_kin or any(not BEINGS.isdisjoint(facet.concepts) for facet in self.facets)


class _Told:
    """What a statement tells."""

    def __init__(self, text: str) -> None:
        self.text = simplified(text)
        self.terms = frozenset(terms(text))
        self.concepts = concepts(text)
        self.of_kin = is_of_kin(text)


def _tells_of_a_matter(clause: str) -> bool:
    """Whether a clause tells something by itself, and not only an amount or a day."""
    if not concepts(clause).keys() <= AMOUNTS:
        return True
    return any(not re.search(r"[\d一二三四五六七八九十百千万]", term) for term in informative_terms(clause))


def _met(facet: Facet, told: _Told, *, by_shape: bool) -> float:
    if all(term in told.terms for term in facet.terms):
        return 1.0
    best = _BY_STEM if any(_is_inflected(term, told.terms) for term in facet.terms) else 0.0
    for concept, asked in facet.concepts.items():
        said = told.concepts.get(concept, 0.0)
        if said:
            both = _NARROWER if asked == 1.0 else _BROADER if said == 1.0 else _BESIDE
            best = max(best, _SAME_CONCEPT if said == asked == 1.0 else both)
        if by_shape and asked == 1.0 and concept in _SHAPE and _SHAPE[concept].search(told.text):
            best = max(best, _BY_SHAPE)
    for term in facet.terms:
        if not term.isascii() and len(term) > 1:
            shared = sum(character in told.text for character in term) / len(term)
            best = max(best, _BY_CHARACTER * shared)
    return best


def _is_inflected(term: str, told: frozenset[str]) -> bool:
    """Whether an English word occurs in a form with another stem: suspension, suspended."""
    begins = term[:_SHORTEST_STEM]
    return (
        term.isalpha()
        and term.isascii()
        and len(term) > _SHORTEST_STEM
        and any(other.startswith(begins) for other in told)
    )


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", simplified(text)).strip().casefold()
