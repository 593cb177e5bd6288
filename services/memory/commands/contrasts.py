"""Contrasts in a message: “it's the viola, not the cello”, 不在太原，在大同. Pure.

A contrast says what does not hold and what does. Whether it corrects memory shows in memory: the value that does
not hold stands there, in the user's own words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.memory.commands.stated_values import (
    CHINESE_CLAUSE,
    CHINESE_LINK,
    LINK,
    MOST_CHARACTERS,
    cut,
    last_value,
    value_of,
    without_afterthought,
    without_questions,
)
from services.text.language import language_of

_ENGLISH_CLAUSE = re.compile(
    r"[,;:()]+(?=\s|$)|\s[-–—]+\s|\b(?:but|and)\s+(?=not\b)|\bbut\b|\s+(?=not\b)|\b(?:sorry|obviously|though)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!\n]+(?=\s|$)")
# What is denied is a thing or a place, at once after the denial or after a verb of being somewhere.
_NEGATION = re.compile(
    r"(?:\bnot|\b(?:is|are|was|were)n['’]t|\b(?:do|does|did)n['’]t(?= (?:live|work|study|go)\b)|\bno longer)"
    r"(?: (?:called|named|living|working|live|work|study|go|staying|going|allergic|married|registered|enrolled"
    r"|based|born|in|at|on|for|from|to|with|a|an|the|my|our|his|her))* (?P<old>[^\s]+(?: [^\s]+){0,2})$",
    re.IGNORECASE,
)
_ABOUT_MEMORY = re.compile(
    r"\b(?:change|correct|update|fix|amend|sorry|please|from now on|always|mistakes?|wrong|typo)\b"
    r"|请|改一下|更正|抱歉|不好意思|错",
    re.IGNORECASE,
)
_CHINESE_NEGATION = re.compile(
    r"不再?(?P<verb>是|在|住在?|叫|姓|属|去|用|吃|喝|学|教|开|养|做|当)(?P<old>[^不]{1,10}?)(?:了|啦)?$"
)
_BEING = frozenset(["是", "在", "住", "住在", "叫", "姓", "属"])
_CHANGED = re.compile("改|换|转")
_CHINESE_WITHIN = re.compile(
    r"(?P<verb>[是在住叫姓属去用吃喝学])(?P<new>[^是不]{1,8}?)(?:而)?不(?P=verb)(?P<old>[^不]{1,8}?)(?:了|啦)?$"
)
_NEAR = 2
"""Clauses from that which denies to the one that says what holds."""


@dataclass(frozen=True)
class Contrast:
    """Two values of which one holds."""

    old: str
    new: str


def contrasts(message: str) -> list[Contrast]:
    """What a message denies and says instead, in its own words; nothing of a question."""
    text = without_questions(message)
    pairs = _in_chinese(text) if language_of([text]) == "zh" else _in_english(text)
    found = [Contrast(old, new) for old, new in pairs if old and new and old.casefold() not in new.casefold()]
    return list(dict.fromkeys(found))


def _in_english(text: str) -> Iterator[tuple[str, str]]:
    clauses: list[str] = []
    sentence_of: list[int] = []
    for number, sentence in enumerate(_SENTENCE_END.split(text)):
        own = [clause.strip() for clause in _ENGLISH_CLAUSE.split(sentence)]
        clauses += [clause for clause in own if clause]
        sentence_of += [number] * (len(clauses) - len(sentence_of))
    denied = [_NEGATION.search(without_afterthought(clause)) for clause in clauses]
    for at, negation in enumerate(denied):
        if negation and not LINK.search(negation["old"]):
            # What holds is said beside it, in the same sentence first.
            near = sorted(range(at - 1, at + 1 + _NEAR), key=lambda place: _distance(sentence_of, at, place))
            beside = [place for place in near if not _distance(sentence_of, at, place)[0]]
            if new := next(_held(clauses, denied, near, beside), ""):
                yield cut(negation["old"]), new


def _distance(sentence_of: Sequence[int], at: int, place: int) -> tuple[bool, bool, int]:
    elsewhere = not (0 <= place < len(sentence_of)) or sentence_of[place] != sentence_of[at]
    return elsewhere, elsewhere and place < at, place


def _held(
    clauses: Sequence[str], denied: Sequence[re.Match[str] | None], near: Sequence[int], beside: Sequence[int]
) -> Iterator[str]:
    """What the clauses at these places say instead; a value alone only beside the denial, in its sentence."""
    for place in near:
        if 0 <= place < len(clauses) and denied[place] is None:
            clause = clauses[place]
            value = value_of if place in beside else last_value
            if not _ABOUT_MEMORY.search(clause) and (new := value(clause)):
                yield new


def _in_chinese(text: str) -> Iterator[tuple[str, str]]:
    clauses = [clause for clause in CHINESE_CLAUSE.split(text) if clause]
    denied = [_CHINESE_NEGATION.search(clause) for clause in clauses]
    for at, clause in enumerate(clauses):
        if within := _CHINESE_WITHIN.search(clause):
            yield within["old"], within["new"]
        elif negation := denied[at]:
            for place in (*range(at + 1, at + 1 + _NEAR), at - 1):
                if (
                    0 <= place < len(clauses)
                    and denied[place] is None
                    and _may_hold(clauses[place], negation["verb"])
                ):
                    links = list(CHINESE_LINK.finditer(clauses[place]))
                    new = re.sub(r"[了啦呢啊]+$", "", clauses[place][links[-1].end() :]) if links else ""
                    if 0 < len(new) <= MOST_CHARACTERS:
                        yield negation["old"], new
                        break


def _may_hold(clause: str, verb: str) -> bool:
    """Whether a clause may say what holds: of what somebody does, by the same verb or as a change."""
    if _ABOUT_MEMORY.search(clause):
        return False
    return verb in _BEING or verb in clause or bool(_CHANGED.search(clause))
