"""Whether two texts say the same: by their embeddings, numbers, dates and negations.

Without a model only equal texts count as the same: nothing is merged or replaced on a likeness.
"""

import re
from typing import Literal

from services.text.language import language_of
from services.text.tokenizer import english_words, informative_terms, simplified_text

Comparison = Literal["same", "newer", "contradicts", "apart"]

_ALIKE = 0.7
"""Cosine from which two texts are about the same."""
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*|[一二三四五六七八九十百千万两]+(?=[个月日号点年岁元块天次])")
_NEGATION_ENGLISH = frozenset(["not", "no", "never", "none", "nobody", "nothing", "neither", "without", "cannot"])
_NEGATION_CHINESE = re.compile("不|没|無|无|别|未|非")
_WORD = re.compile(r"[^\W_]+")


def compare(a: str, b: str, cosine: float | None = None) -> Comparison:
    """Say how a later text `b` relates to `a`.

    `same`: their words are equal. `contradicts`: alike, but one of them denies. `newer`: alike, with other
    numbers, dates or words. `apart`: anything else, and all that is not alike by their `cosine`.
    """
    if are_equal(a, b):
        return "same"
    if cosine is None or cosine < _ALIKE:
        return "apart"
    if _denials(a) % 2 != _denials(b) % 2:
        return "contradicts"
    mine, theirs = informative_terms(a), informative_terms(b)
    if numbers(a) != numbers(b) or (mine & theirs and mine - theirs and theirs - mine):
        return "newer"
    return "apart"


def are_equal(a: str, b: str) -> bool:
    """Whether two texts have the same words, whatever their marks, widths and cases."""
    return _WORD.findall(simplified_text(a)) == _WORD.findall(simplified_text(b))


def numbers(text: str) -> list[str]:
    """The numbers and dates of a text, in order."""
    return _NUMBER.findall(simplified_text(text))


def _denials(text: str) -> int:
    if language_of([text]) == "zh":
        return len(_NEGATION_CHINESE.findall(simplified_text(text)))
    return sum(word in _NEGATION_ENGLISH or word.endswith("n't") for word in english_words(text))
