"""Extractive summaries without a language model: the user's own words, as many as fit."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from services.llm.tokens import count_tokens
from services.summaries.prompts import Said
from services.text.language import Language
from services.text.lexical import words
from services.text.sentences import sentences

_QUESTION = re.compile(r"[?？]\s*$|[吗呢]\s*$")
_LONGEST_TITLE = 40
_SURELY_OVER = 2
"""Largest ratio between tokens of sentences counted one by one and together."""


def extract(summary: str, messages: Sequence[Said], language: Language, most_tokens: int) -> str:
    """The user's statements, the old summary's first; beyond the limit the least informative are left out.

    Telling is a statement whose words are rare among all of them (inverse document frequency).
    """
    old = _sentences(summary)
    new = [
        sentence
        for role, text in messages
        if role == "user"
        for sentence in _sentences(text)
        if not _QUESTION.search(sentence)
    ]
    kept = list(dict.fromkeys([*old, *new]))
    seen = Counter(word for sentence in kept for word in set(words(sentence)))

    def telling(sentence: str) -> float:
        return sum(math.log(1 + len(kept) / seen[word]) for word in set(words(sentence)))

    joint = "" if language == "zh" else " "
    least_telling = sorted(kept, key=telling)
    sizes = [count_tokens(sentence) for sentence in least_telling]
    # Count all sentences together only near the limit: a long transcript has thousands.
    first, left = 0, sum(sizes)
    while left > _SURELY_OVER * most_tokens and first < len(sizes):
        left -= sizes[first]
        first += 1
    dropped = set(least_telling[:first])
    kept = [sentence for sentence in kept if sentence not in dropped]
    for sentence in least_telling[first:]:
        if count_tokens(joint.join(kept)) <= most_tokens:
            break
        kept.remove(sentence)
    return joint.join(kept)


def title_from(messages: Sequence[Said]) -> str:
    """The beginning of the user's first statement."""
    text = next((" ".join(text.split()) for role, text in messages if role == "user"), "…")
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"


def _sentences(text: str) -> list[str]:
    return [stripped for found in sentences(text) if (stripped := found.text.strip())]
