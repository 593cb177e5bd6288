"""Whether two texts say the same: the one judge of it."""

import re
import unicodedata
from typing import Literal

from services.text.caches import text_cache

Comparison = Literal["same", "alike", "apart"]
"""`same`: equal but for case, width, spaces and punctuation. `alike`: they may say the same, or contradict each
other; a model can tell. `apart`: they are about different things."""

ALIKE = 0.55
"""Cosine of two embeddings from which on texts are alike, unless unrelated texts reach it."""
_SHORT, _KEPT = 500, 2_000
"""Characters of texts that are kept folded, and their number: each is compared with many."""
_MARKS = " .,;:!?\"'“”‘’()（）。，；：！？、…"
_BESIDE_CHINESE = re.compile(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])")


def compare(one: str, other: str, likeness: float = 0.0, *, floor: float = ALIKE) -> Comparison:
    """Compare two texts.

    Args:
        likeness: the cosine of their embeddings, -1 to 1.
        floor: the least likeness of texts that are alike.
    """
    if folded(one) == folded(other):
        return "same"
    return "alike" if likeness >= floor else "apart"


def folded(text: str) -> str:
    """Return a text without what does not change its meaning: case, width, spaces, punctuation around words."""
    return (_kept if len(text) <= _SHORT else _folded)(text)


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _BESIDE_CHINESE.sub("", " ".join([word for each in folded.split() if (word := each.strip(_MARKS))]))


_kept = text_cache(_KEPT)(_folded)
