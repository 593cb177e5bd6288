"""English first names, told from other capitalised words: "I'm Margot" gives a name, "I'm Dutch" does not.

No list of names: a word is near the names below in meaning, or near the words for origins and beliefs.
"""

import re
from functools import cache

import numpy as np

from services.text.tokenizer import terms
from services.text.word_vectors import Vectors, word_vectors

_NAMES = ("sarah", "john", "kate", "margaret", "tom", "maria", "rashid", "paul", "anna", "kevin")
_OTHERS = (
    "german",
    "irish",
    "muslim",
    "vegan",
    "buddhist",
    "canadian",
    "british",
    "catholic",
    "american",
    "european",
)
_NEARER = 0.05
_MOST_OF_OTHERS = 0.15
_CAPITALISED = re.compile(r"[A-Z][a-zà-öø-ÿ]+(?:-[A-Z][a-zà-öø-ÿ]+)?")
_OF_AN_ORIGIN = re.compile(r"(?:ian|ish|ese|ean|an|er|ist|ic|i)$")
"""Ends of unknown words that name an origin, a belief or a trade."""
_STAR_SIGNS = frozenset(
    "aries taurus gemini cancer leo virgo libra scorpio sagittarius capricorn aquarius pisces".split()  # noqa: SIM905
)


def is_first_name(word: str) -> bool:
    """Whether a single capitalised word is probably a person's first name."""
    if not _CAPITALISED.fullmatch(word) or word.casefold() in _STAR_SIGNS:
        return False
    found = terms(word)
    if not found:
        return False
    vectors = word_vectors()
    row = vectors.rows(found[:1])
    if row[0] < 0:
        return _OF_AN_ORIGIN.search(word) is None
    vector = vectors.at(row)[0]
    names, others = _centres()
    of_others = float(vector @ others)
    return of_others < _MOST_OF_OTHERS and float(vector @ names) - of_others > _NEARER


@cache
def _centres() -> tuple[Vectors, Vectors]:
    return _centre(_NAMES), _centre(_OTHERS)


def _centre(words: tuple[str, ...]) -> Vectors:
    vectors = word_vectors()
    mean: Vectors = vectors.at(vectors.rows([term for word in words for term in terms(word)])).mean(axis=0)
    return mean / np.linalg.norm(mean)
