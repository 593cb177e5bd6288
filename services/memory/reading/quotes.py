"""Decides whether a quote is taken from the user's own words, and whether it says enough to base a change on. Pure
functions."""

import re
import unicodedata
from dataclasses import dataclass

from services.memory.reading.foreign_words import parts_of
from services.text.caches import text_cache
from services.text.language import sentences
from services.text.tokenizer import informative_terms

_FEWEST_CHINESE, _A_WORD, _A_CLAUSE = 4, 2, 3
"""Minimum of Chinese characters in a quote, the number of them that one word in another script counts for, and the
number that is enough if they are a whole clause."""
_NO_BLANKS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Chinese characters and Japanese syllables: no blank ends their words."""
_FOREIGN_TO_CHINESE = re.compile(rf"[^\W_{_NO_BLANKS}]+(?:'[^\W_{_NO_BLANKS}]+)?")
_CLAUSE_ENDS = re.compile(r"[,.!?;:、。…\s]+")
_MARKS = str.maketrans(dict.fromkeys('“”„‟«»‹›「」『』＂"‘’‚‛`´＇', "'"))
_EDGES = " '.,;:!?…。，；：！？、-–—"
_CHINESE = re.compile(f"[{_NO_BLANKS}]")


@dataclass(frozen=True)
class Quoted:
    """The user's own words in a message on which a change rests."""

    text: str
    is_certain: bool
    """Whether they are surely the user's. If not, they follow a text of others whose end is unclear."""


def is_quoted(quote: str, message: str) -> bool:
    """Return whether a quote stands in one part of the user's own words, and says enough to base a change on.

    Differences of case, width, quotation marks and blanks do not count. A quote of a single word is enough only if
    it is the whole message.
    """
    found = quoted(quote, message)
    return found is not None and found.is_certain


def quoted(quote: str, message: str, statement: str = "") -> Quoted | None:
    """Return the part of a message that a quote means; None if the quote is not in it, or only in words of others.

    A quote that says too little stands for the sentence around it, if the statement that rests on it has a word of
    that sentence.
    """
    sought = folded(quote)
    if not sought:
        return None
    parts = parts_of(message)
    if sought == folded(message):
        return Quoted(quote, is_certain=True) if all(each.whose == "user" for each in parts) else None
    informative = informative_terms(sought)
    for part in parts if informative else ():
        text, is_certain = message[part.start : part.end], part.whose == "user"
        if part.whose == "others" or not _stands_in(sought, folded(text)):
            continue
        if _says_enough(sought, text):
            return Quoted(quote, is_certain)
        around = (each.text.strip() for each in sentences(text) if _stands_in(sought, folded(each.text)))
        sentence = next(around, "")
        is_enough = _says_enough(folded(sentence), text) or sentence == message.strip()
        if is_enough and not informative.isdisjoint(informative_terms(statement)):
            return Quoted(sentence, is_certain)
    return None


def _says_enough(sought: str, text: str) -> bool:
    """Return whether words are enough to base a change on; they are counted separately in each script."""
    chinese = len(_CHINESE.findall(sought))
    if chinese + _A_WORD * len(_FOREIGN_TO_CHINESE.findall(sought)) >= _FEWEST_CHINESE:
        return True
    return chinese >= _A_CLAUSE and sought in _CLAUSE_ENDS.split(folded(text))


@text_cache(64)
def folded(text: str) -> str:
    """Return a text with its case, width, quotation marks, blanks and invisible characters folded."""
    if not text.isascii():
        for each in set(text):
            if unicodedata.category(each) == "Cf":
                text = text.replace(each, "")
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().translate(_MARKS).split()).strip(_EDGES)


def _stands_in(sought: str, text: str) -> bool:
    at = text.find(sought)
    while at >= 0:
        end = at + len(sought)
        if not (_continues(text, at) or _continues(text, end)):
            return True
        at = text.find(sought, end)
    return False


def _continues(text: str, at: int) -> bool:
    """Return whether a word continues across a position; Chinese has no marks between words."""
    around = text[max(at - 1, 0) : at + 1]
    return at > 0 and len(around) == 2 and all(each.isalnum() and not _CHINESE.match(each) for each in around)  # noqa: PLR2004
