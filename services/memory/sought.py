"""What a command is about, looked for among what was told: by its words, by its concepts, by what values look like.

Where no statement shares nearly all words with what the user names (`mentions`), the one is meant that stands out
from all others: "how much I earn" is "I make 74k a year", as long as nothing else comes near.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from services.memory.concepts import Facet, concepts, facets
from services.memory.mentions import is_of_kin, pieces_of, refers_back, statements_of, worth_keeping
from services.memory.terms import simplified, terms

_NARROWER = 0.8
_BROADER = 0.35
_BESIDE = 0.15
_BY_SHAPE = 0.6
_BY_CHARACTER = 0.5
_OF_KIN = 0.5
"""Of a statement about somebody else, where the user names only himself."""
_NOWHERE = 0.5
"""Of a word that no statement has, which may as well say how the matter is called as what it is about."""
_LEAST = 0.24
_STANDS_OUT = 0.65
"""Of the best score what the next one may reach at most, unless it tells of the same."""
_AS_GOOD = 0.85
_NEARLY_ALL = 0.6
"""From here on a statement is meant whatever else there is."""
_SMALLEST_STORE = 50

_BEINGS = frozenset({"family", "friend", "boss", "colleague", "neighbour", "teacher", "pet", "divorce", "car"})
"""Concepts of whom or what more may be told in the same breath."""
_AMOUNTS = frozenset({"money", "measure", "debt", "weekday", "age", "number", "health"})
_SHAPES: Mapping[str, str] = {
    "money": r"[$€£¥]\s?\d|\d[\d,.]*\s?(?:k\b|dollars?|euros?|pounds?\b|bucks|grand|usd|eur|yuan|块|元|万|千)|[一二三四五六七八九十]+[万千百]",
    "salary": r"\d[\d,.]*\s?k?\s(?:a|per|an) (?:year|month|hour|week)|\bmake \d",
    "measure": r"\d[\d.,]*\s?(?:kg|kilos?|lbs?|pounds|stone|cm|公斤|斤|厘米|千克)",
    "medicine": r"\d+\s?mg\b|\bmilligrams?\b|毫克|\w+(?:pram|zine|statin|formin|pril|azole|cillin|oxetine|traline)\b|[\u4e00-\u9fff]{1,3}[林平素片胶囊汀](?=[，,。;； ]|$)",
    "password": r"\b(?=\w*\d)\w{4,}\b|(?:[\w-]*\d[\w-]*){4,}",
    "reference": r"\b[\w-]*\d{3,}[\w-]*\b",
    "phone": r"\d[\d -]{6,}",
    "age": r"\b\d{1,3}\b(?: years?)?|[\d一二三四五六七八九十]+岁",
    "birthday": r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)\w*\b|\d+月|[一二三四五六七八九十]+月",
    "home": r"\b(?:live|lives|living|moved|flat|street|road|avenue|lane)\b|住|小区|路\d|号楼",
    "work": r"\b(?:work|works|job|employed|hired|as an? \w+er)\b|上班|工作|入职",
    "study": r"(?:school|college|university|kindergarten|小学|中学|大学|幼儿园|高中|初中|年级)",
    "health": r"\b(?:diagnos\w*|disease|syndrome|surgery|depress\w*|anxiety|cancer|\w+itis|\w+oma)\b|病|癌|炎|症|梗|手术|抑郁|确诊",
}
"""What the value of a concept looks like, though no word of its statement names it."""
_SHAPE = {concept: re.compile(pattern, re.IGNORECASE) for concept, pattern in _SHAPES.items()}


class Sought:
    """What some words of the user's are about."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.of_kin = is_of_kin(words)

    @cached_property
    def facets(self) -> tuple[Facet, ...]:
        """Each thing that they name."""
        return facets(self.words)

    def patterns(self) -> list[str]:
        """Patterns of LIKE, of which whatever shares a word with it matches one."""
        stems = {
            term[:-1] if term.isascii() and len(term) > 4 else term for each in self.facets for term in each.terms
        }  # noqa: PLR2004
        return sorted("%" + re.sub(r"([\\%_])", r"\\\1", stem) + "%" for stem in stems if len(stem) > 1)

    def scores(self, statements: Sequence[str]) -> list[float]:
        """For each statement the share of what is named, by weight, of which it tells; rare words weigh more."""
        if not self.facets:
            return [0.0] * len(statements)
        told = [_Told(statement) for statement in statements]
        met = [[_met(facet, each) for facet in self.facets] for each in told]
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
            * (_OF_KIN if each.of_kin and not self.of_kin else 1.0)
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
            return chosen
        return chosen if len(texts) == 1 and nearest <= _STANDS_OUT * best else []

    def is_told_by(self, text: str) -> bool:
        """Whether a text by itself tells of most of it."""
        return bool(self.facets) and self.scores([text])[0] >= _NEARLY_ALL / 2

    def left_of(self, text: str, gone: Sequence[str], kept: "Sought") -> str:
        """A text without the statements that are meant and what goes on about them; empty = nothing worth keeping."""
        left: list[str] = []
        follows = False
        for part in statements_of(text):
            if part in gone:
                left.append(self._left_of_statement(part, kept))
                follows = True
            elif not (follows and refers_back(part)) or kept.is_told_by(part):
                left.append(part)
                follows = False
        return worth_keeping("".join(left))

    def _left_of_statement(self, statement: str, kept: "Sought") -> str:
        """The pieces between commas that are to stay, or tell of another matter of the user's."""
        pieces = pieces_of(statement)
        if len(pieces) == 1:
            return ""
        scores = self.scores(pieces)
        least = max(scores) / 2
        told = [_Told(piece) for piece in pieces]
        own_matter = not statement.isascii() and not self._is_about_somebody and not _Told(statement).of_kin
        return "".join(
            piece
            for piece, score, each in zip(pieces, scores, told, strict=True)
            if kept.is_told_by(piece) or (own_matter and score < least and each.tells_of_a_matter)
        )

    @property
    def _is_about_somebody(self) -> bool:
        return self.of_kin or any(not _BEINGS.isdisjoint(facet.concepts) for facet in self.facets)


class _Told:
    """What a statement tells."""

    def __init__(self, text: str) -> None:
        self.text = simplified(text)
        self.terms = frozenset(terms(text))
        self.concepts = concepts(text)
        self.of_kin = is_of_kin(text)

    @property
    def tells_of_a_matter(self) -> bool:
        """Whether it names a concept, and not only an amount or a day."""
        return not self.concepts.keys() <= _AMOUNTS


def _met(facet: Facet, told: _Told) -> float:
    if all(term in told.terms for term in facet.terms):
        return 1.0
    best = 0.0
    for concept, asked in facet.concepts.items():
        said = told.concepts.get(concept, 0.0)
        if said:
            both = (
                1.0
                if said == asked == 1.0
                else _NARROWER
                if asked == 1.0
                else _BROADER
                if said == 1.0
                else _BESIDE
            )
            best = max(best, both)
        if asked == 1.0 and concept in _SHAPE and _SHAPE[concept].search(told.text):
            best = max(best, _BY_SHAPE)
    for term in facet.terms:
        if not term.isascii() and len(term) > 1:
            shared = sum(character in told.text for character in term) / len(term)
            best = max(best, _BY_CHARACTER * shared)
    return best


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", simplified(text)).strip().casefold()
