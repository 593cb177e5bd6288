"""An index of pieces of memory, by which it is told how far each one meets what some words name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from services.memory.commands.pieces import content_of
from services.text.concepts import Facet
from services.text.word_vectors import word_vectors

Values = NDArray[np.float64]

_STEM = 5
"""Letters that forms of a word have in common: suspension, suspended."""
_BY_STEM = 0.8
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
class Held:
    """The pieces among which one may be meant, the newest text last."""

    texts: Sequence[str]
    of: NDArray[np.intp]
    """Which text each is of; pieces of one text stand together."""
    just_before: NDArray[np.bool_]
    """Which were said just before, in the same conversation."""


class PieceIndex:
    """Pieces by their words, concepts and the shapes of their values."""

    def __init__(self, held: Held) -> None:
        self.size = len(held.texts)
        self.contents = [content_of(text) for text in held.texts]
        self.of = held.of
        self.terms: dict[str, list[int]] = {}
        self.stems: dict[str, list[int]] = {}
        self.concepts: dict[str, list[tuple[int, float]]] = {}
        for place, each in enumerate(self.contents):
            for term in each.terms:
                self.terms.setdefault(term, []).append(place)
                if len(term) > _STEM and term.isascii():
                    self.stems.setdefault(term[:_STEM], []).append(place)
            for concept, share in each.concepts.items():
                self.concepts.setdefault(concept, []).append((place, share))
        rows = [each.rows for each in self.contents]
        sizes = np.array([len(each) for each in rows], dtype=np.intp)
        self.known, inverse = np.unique(np.concatenate([*rows, np.empty(0, np.intp)]), return_inverse=True)
        self.places = inverse.astype(np.intp)
        self.with_words = np.flatnonzero(sizes)
        self.starts = np.concatenate([[0], np.cumsum(sizes)])[:-1][self.with_words].astype(np.intp)
        self.vectors = word_vectors().at(self.known)
        self.telling = word_vectors().weights_at(self.known)

    def by_terms(self, facet: Facet) -> Values:
        """How far each piece has the words of what is named, or other forms of them."""
        found = np.zeros(self.size)
        counts = np.zeros(self.size)
        for term in facet.terms:
            counts[self.terms.get(term, [])] += 1
            if len(term) > _STEM and term.isascii():
                found[self.stems.get(term[:_STEM], [])] = _BY_STEM
        whole = counts == len(facet.terms)
        return cast(Values, np.where(whole, 1.0, np.maximum(found, 0.5 * counts / len(facet.terms))))

    def by_concepts(self, facet: Facet) -> Values:
        """How far each piece speaks of the concepts that are named."""
        found = np.zeros(self.size)
        for concept, asked in facet.concepts.items():
            for place, said in self.concepts.get(concept, ()):
                found[place] = max(found[place], said * asked)
        return found

    def by_shape(self, facet: Facet) -> Values:
        """Which pieces hold a value that looks like one of what is named: “74k a year” for a salary."""
        found = np.zeros(self.size)
        for concept, asked in facet.concepts.items():
            if asked == 1.0 and concept in _SHAPE:
                looks = self.flags([_SHAPE[concept].search(each.text) is not None for each in self.contents])
                found = np.maximum(found, looks)
        return cast(Values, found)

    def by_meaning(self, rows: NDArray[np.intp]) -> Values:
        """The greatest nearness of any word of each piece to any of these words."""
        found = np.zeros(self.size)
        if len(rows) and len(self.known):
            near = (word_vectors().at(rows) @ self.vectors.T).max(axis=0)
            found[self.with_words] = np.maximum.reduceat(near[self.places], self.starts)
        return np.maximum(found, 0.0)

    def explained(self, rows: NDArray[np.intp]) -> Values:
        """How near the words of each piece are to these words, on average by what they tell."""
        found = np.zeros(self.size)
        if len(rows) and len(self.known):
            near = np.maximum((word_vectors().at(rows) @ self.vectors.T).max(axis=0), 0.0) * self.telling
            whole = np.add.reduceat(self.telling[self.places], self.starts)
            found[self.with_words] = np.add.reduceat(near[self.places], self.starts) / np.maximum(whole, 1e-6)
        return found

    def around(self, values: Values) -> Values:
        """The greatest value of any piece of the same text."""
        begins = np.flatnonzero(np.diff(self.of, prepend=-1))
        highest = np.maximum.reduceat(values, begins)
        return cast(Values, np.repeat(highest, np.diff(np.append(begins, self.size))))

    def flags(self, which: Sequence[float]) -> Values:
        """A column of values."""
        return np.array(which, dtype=np.float64)
