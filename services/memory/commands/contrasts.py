"""Contrasts in a message: “it's the viola, not the cello”, 不在太原，在大同. Pure.

A contrast says what does not hold and what does. Whether it corrects memory shows in memory: the value that does
not hold stands there, in the user's own words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.text.language import language_of
from services.text.sentences import sentences

_ENGLISH_CLAUSE = re.compile(
    r"[,;:()]+(?=\s|$)|\s[-–—]+\s|\b(?:but|and)\s+(?=not\b)|\bbut\b|\s+(?=not\b)|\b(?:sorry|obviously|though)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!\n]+(?=\s|$)")
_CHINESE_CLAUSE = re.compile(r"[，,。；;！!？?：:（）()\n]+|\s+")
# What is denied is a thing or a place, at once after the denial or after a verb of being somewhere.
_NEGATION = re.compile(
    r"(?:\bnot|\b(?:is|are|was|were)n['’]t|\b(?:do|does|did)n['’]t(?= (?:live|work|study|go)\b)|\bno longer)"
    r"(?: (?:called|named|living|working|live|work|study|go|staying|going|in|at|on|for|from|to|with|a|an|the|my"
    r"|our|his|her))* (?P<old>[^\s]+(?: [^\s]+){0,2})$",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"(?:\b(?:is|are|was|were|am|be|at|in|on|from|for|to|with|called|named|a|an|the|my|our|his|her)\b|['’](?:s|m|re)\b)",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"\s+(?:at all|any ?more|any longer|after all|instead|actually|really|now)$", re.IGNORECASE
)
_GOES_ON = re.compile(r"\s+(?:he|she|it|they|we|i|you|that|which|who|because|since|as|so)\b.*$", re.IGNORECASE)
_DOING = re.compile(r"^(?:[a-z]+ing|really|actually|now|just)\s+(?=\S)")
_PRONOUN = re.compile(r"\b(?:i|you|he|she|it|they|we|that|this|please)\b", re.IGNORECASE)
_ABOUT_MEMORY = re.compile(r"\b(?:change|correct|update|fix|amend|sorry|please)\b|请|改一下|更正|抱歉|不好意思|错")
_CHINESE_NEGATION = re.compile(
    r"不再?(?P<verb>是|在|住在?|叫|姓|属|去|用|吃|喝|学|教|开|养|做|当)(?P<old>[^不]{1,10}?)(?:了|啦)?$"
)
_BEING = frozenset(["是", "在", "住", "住在", "叫", "姓", "属"])
_CHANGED = re.compile("改|换|转")
_CHINESE_WITHIN = re.compile(
    r"(?P<verb>[是在住叫姓属去用吃喝学])(?P<new>[^是不]{1,8}?)(?:而)?不(?P=verb)(?P<old>[^不]{1,8}?)(?:了|啦)?$"
)
_CHINESE_LINK = re.compile(
    r"(?:是|住在|在|住|叫|姓|属|换成|换到|改成|改到|改为|变成|去|用|吃|喝|学|教|开|养|当|到)"
)
_MOST_WORDS = 4
_MOST_CHARACTERS = 12
_NEAR = 2
"""Clauses from that which denies to the one that says what holds."""


@dataclass(frozen=True)
class Contrast:
    """Two values of which one holds."""

    old: str
    new: str


def contrasts(message: str) -> list[Contrast]:
    """What a message denies and says instead, in its own words; nothing of a question."""
    text = "".join(each.text for each in sentences(message) if not each.asks)
    pairs = _in_chinese(text) if language_of([text]) == "zh" else _in_english(text)
    return [Contrast(old, new) for old, new in pairs if old and new and old.casefold() not in new.casefold()]


def _in_english(text: str) -> Iterator[tuple[str, str]]:
    clauses: list[str] = []
    sentence_of: list[int] = []
    for number, sentence in enumerate(_SENTENCE_END.split(text)):
        own = [clause.strip() for clause in _ENGLISH_CLAUSE.split(sentence)]
        clauses += [clause for clause in own if clause]
        sentence_of += [number] * (len(clauses) - len(sentence_of))
    denied = [_NEGATION.search(_AFTERTHOUGHT.sub("", clause)) for clause in clauses]
    for at, negation in enumerate(denied):
        if negation and not _LINK.search(negation["old"]):
            # What holds is said beside it, in the same sentence first.
            near = sorted(range(at - 1, at + 1 + _NEAR), key=lambda place: _distance(sentence_of, at, place))
            if new := next(_held(clauses, denied, near), ""):
                yield _short(_GOES_ON.sub("", negation["old"])), new


def _distance(sentence_of: Sequence[int], at: int, place: int) -> tuple[bool, bool, int]:
    elsewhere = not (0 <= place < len(sentence_of)) or sentence_of[place] != sentence_of[at]
    return elsewhere, elsewhere and place < at, place


def _held(clauses: Sequence[str], denied: Sequence[re.Match[str] | None], near: Sequence[int]) -> Iterator[str]:
    """What the clauses at these places say instead."""
    for place in near:
        if 0 <= place < len(clauses) and denied[place] is None:
            clause = clauses[place]
            if not _ABOUT_MEMORY.search(clause) and (new := _value(clause)):
                yield new


def _value(clause: str) -> str:
    """What a clause says of its subject: the words behind its last link; all of a clause of a few words."""
    plain = _AFTERTHOUGHT.sub("", clause)
    links = list(_LINK.finditer(plain))
    if not links:
        return "" if _PRONOUN.search(plain) else _short(plain)
    for link in reversed(links):
        value = _short(_DOING.sub("", _GOES_ON.sub("", plain[link.end() :]).strip()))
        if value and not _PRONOUN.fullmatch(value.split()[0]):
            return value
    return ""


def _short(value: str) -> str:
    return value.strip(" *\"'“”!?") if 0 < len(value.split()) <= _MOST_WORDS else ""


def _in_chinese(text: str) -> Iterator[tuple[str, str]]:
    clauses = [clause for clause in _CHINESE_CLAUSE.split(text) if clause]
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
                    links = list(_CHINESE_LINK.finditer(clauses[place]))
                    new = re.sub(r"[了啦呢啊]+$", "", clauses[place][links[-1].end() :]) if links else ""
                    if 0 < len(new) <= _MOST_CHARACTERS:
                        yield negation["old"], new
                        break


def _may_hold(clause: str, verb: str) -> bool:
    """Whether a clause may say what holds: of what somebody does, by the same verb or as a change."""
    if _ABOUT_MEMORY.search(clause):
        return False
    return verb in _BEING or verb in clause or bool(_CHANGED.search(clause))
