"""Finds the sentences of an answer that repeat texts of others which its prompt showed. Pure functions.

A sentence repeats them if it shares an informative word with them which the user has not said, or most of its
words. In another script than theirs nobody can tell: then each sentence may.
"""

import re
from collections.abc import Iterable, Sequence

from services.text.language import folded, sentences
from services.text.tokenizer import informative_terms

_FEWEST_SHARED = 2
"""Words that a sentence shares at least to repeat what the user has said as well."""
_HAN = re.compile(r"[\u3400-\u9fff]")


def repeated_spans(answer: str, foreign: Iterable[str], said: Iterable[str]) -> list[int]:
    """Return the places of an answer's sentences that repeat foreign texts, one after the other.

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
    """Return the sentences of a text that begin and end there; None = the whole text."""
    if spans is None:
        return [text] if text.strip() else []
    return [text[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)]


def marked(text: str, repeats: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the sentences of a text, each with whether it repeats one of `repeats`."""
    known = [folded(each) for each in repeats]
    return [(each.text, any(folded(each.text) in one for one in known)) for each in sentences(text)]
