"""Finds the sentences of an answer that repeat texts of others in its prompt. Pure functions.

A sentence repeats them if it shares with them an informative word that the user has not said, or most of its
words. If sentence and texts are in different scripts nobody can tell, so each sentence counts as repeating.
"""

import re
from collections.abc import Iterable, Sequence

from services.text.language import folded, sentences
from services.text.tokenizer import informative_terms

_FEWEST_SHARED = 2
"""Minimum number of shared words by which a sentence repeats something that the user has said too."""
_HAN = re.compile(r"[\u3400-\u9fff]")


def repeated_spans(answer: str, foreign: Iterable[str], said: Iterable[str]) -> list[int]:
    """Return the positions of an answer's sentences that repeat texts of others, in order.

    Args:
        foreign: Texts of others.
        said: Words of the user.
    """
    texts = [each for each in foreign if each.strip()]
    if not texts:
        return []
    theirs = {term for each in texts for term in informative_terms(each)}
    own = {term for each in said for term in informative_terms(each)}
    scripts = {_HAN.search(each) is not None for each in texts}
    spans = list[int]()
    for each in sentences(answer):
        words = informative_terms(each.text)
        shared = words & theirs
        most = len(shared) >= _FEWEST_SHARED and 2 * len(shared) >= len(words)
        other_script = (_HAN.search(each.text) is not None) not in scripts and not words <= own
        if shared - own or most or other_script:
            spans += (each.start, each.end)
    return spans


def sentences_at(text: str, spans: Sequence[int] | None) -> list[str]:
    """Return the sentences of a text at these positions; None = the whole text."""
    if spans is None:
        return [text] if text.strip() else []
    return [text[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)]


def marked(text: str, repeats: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the sentences of a text, and for each whether it repeats one of `repeats`."""
    known = [folded(each) for each in repeats]
    return [(each.text, any(folded(each.text) in one for one in known)) for each in sentences(text)]
