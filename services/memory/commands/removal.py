"""A text without some of its pieces, and without what only goes on about them. Pure."""

import re
from collections.abc import Set

from services.memory.commands.pieces import pieces
from services.text.concepts import concepts
from services.text.mentions import AMOUNTS, refers_back, stands_alone, worth_keeping
from services.text.tokenizer import informative_terms

_AMOUNT = re.compile(r"[\d一二三四五六七八九十百千万]")


def without_pieces(text: str, gone: Set[int], *, only_a_detail: bool = False) -> str:
    """What is left of a text without the pieces of these numbers; empty where nothing worth keeping is.

    What follows and says something of the same goes as well: “He lives in Leith” after “My ex is called Graham”,
    unless `only_a_detail` of somebody goes.
    """
    parts = pieces(text)
    left: list[str] = []
    head_gone = False
    for number, part in enumerate(parts):
        if number in gone:
            head_gone = not number or stands_alone(part) or _ends_sentence(parts[number - 1]) or head_gone
        elif (
            number
            and (number - 1 in gone or head_gone)
            and _goes_on(part, parts[number - 1], head_gone, only_a_detail)
        ):
            continue
        else:
            head_gone = False
            left.append(part)
    return worth_keeping("".join(left) + text[sum(map(len, parts)) :])


def without_value(text: str, old: str, new: str) -> str:
    """What is left of a correction without the value that holds no more.

    Of a piece that also has the new value only the words of the old one go.
    """
    left = []
    for part in pieces(text):
        if old.casefold() not in part.casefold():
            left.append(part)
        elif new and new.casefold() in part.casefold():
            left.append(re.sub(rf"(?:\b(?:the|my|a|an|our) )?{re.escape(old)}\s*", "", part, flags=re.IGNORECASE))
    return "".join(left)


def _goes_on(part: str, before: str, head_gone: bool, only_a_detail: bool) -> bool:
    """Whether a piece says nothing without the one before it, which is gone."""
    if refers_back(part):
        return not only_a_detail
    if _ends_sentence(before):
        return False
    if part.isascii():
        return head_gone and not stands_alone(part)
    return not _tells_of_a_matter(part)


def _ends_sentence(part: str) -> bool:
    return part.rstrip().endswith((".", "!", "?", "。", "！", "？", ";", "；", "…", "\n"))


def _tells_of_a_matter(clause: str) -> bool:
    """Whether a clause tells something by itself, and not only an amount or a day."""
    if not concepts(clause).keys() <= AMOUNTS:
        return True
    return any(not _AMOUNT.search(term) for term in informative_terms(clause))
