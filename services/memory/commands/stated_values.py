"""Values that the clauses of a message state: “oat milk” of “I take it with oat milk”, 大同 of 是在大同."""

import re
from collections.abc import Iterator

from services.text.language import language_of
from services.text.sentences import sentences

ENGLISH_CLAUSE = re.compile(
    r"[,;:()!?]+(?=\s|$)|\.+(?=\s|$)|\n+|\s[-–—]+\s|\b(?:but|so|because|though)\b"
    r"|\band (?=(?:i|we|it|he|she|my|the)\b)",
    re.IGNORECASE,
)
CHINESE_CLAUSE = re.compile(r"[，,。；;！!？?：:（）()\n]+|\s+")
LINK = re.compile(
    r"(?:\b(?:is|are|was|were|am|be|been|at|in|on|from|for|to|with|called|named|a|an|the|my|our|his|her)\b"
    r"|['’](?:s|m|re)\b)",
    re.IGNORECASE,
)
CHINESE_LINK = re.compile(
    r"(?:是|住在|在|住|叫|姓|属|换成|换到|改成|改到|改为|变成|去|用|吃|喝|学|教|开|养|当|到)"
)
PRONOUN = re.compile(r"\b(?:i|you|he|she|it|they|we|that|this|please)\b", re.IGNORECASE)
MOST_CHARACTERS = 12
_MOST_WORDS = 4
_AFTERTHOUGHT = re.compile(
    r"\s+(?:at all|any ?more|any longer|after all|instead|actually|really|now|these days|today|already|then|btw|"
    r"(?:since )?last \w+|(?:\w+ )?\w+ ago|since \w+|from now on|as of \w+|again|too|by the way|obviously)+\W*$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\s+(?:and |or )?(?:he|she|it|they|we|i|you|that|which|who|because|since|as|so)\b.*$", re.IGNORECASE
)
_ARTICLE = re.compile(r"^(?:a|an|the|my|our)\s+", re.IGNORECASE)
_DOING = re.compile(r"^(?:[a-z]+ing|really|actually|now|just)\s+(?=\S)")
_CHINESE_BEING = re.compile(r"(?:应该|其实|写)?(?:的?是|叫做?|姓|换成|改成|改为|改到|变成|挪到)|现在(?:在|住)")
_REPEATS = re.compile(
    r"\b(?:i(?:['’]ve)? (?:said|told you|wrote|typed|mentioned)|you (?:think|noted|wrote|said)|you have it down)\b"
    r"|(?:跟|和|对|同)(?:你|您)(?:说|講|讲|提)|我(?:之前|上次|刚才|前面)?(?:说|說|写|寫|讲|记)|你记",
    re.IGNORECASE,
)
"""A clause that repeats what was said before."""
_DENIES = re.compile(r"\bnot\b|n['’]t\b|\bno longer\b|不再?(?:是|在|住|叫|姓|属)", re.IGNORECASE)
_TURNS_OUT = re.compile(
    r"^\W*(?:(?:actually|turns out|in fact|no|sorry)\W+)*(?:it|that|he|she|they|i|we|this)?"
    r"(?:['’](?:s|re|m)| is| are| am| should| was)|其实|应该|才是|现在|^是|改|换",
    re.IGNORECASE,
)
"""A clause that most likely says what holds."""
_SAYS_WHETHER = re.compile(
    r"(?:wrong|mistakes?|typo|off|right|true|afraid|sure|sorry|fine|correct|incorrect|mistaken|outdated|done|ok|okay|it|that|this"
    r"|back|错|对|不对|的|这样|那样|他|她|它|我|你)(?:\W.*)?",
    re.IGNORECASE,
)
"""What says of a value that it holds or not, and is none itself."""


def without_questions(message: str) -> str:
    """A message without the sentences that end in a question mark."""
    return "".join(each.text for each in sentences(message) if not each.asks)


def values_said(message: str) -> list[str]:
    """What each clause says of its subject, the surest first; nothing of what asks, denies or repeats."""
    text = without_questions(message)
    is_chinese = language_of([text]) == "zh"
    found = []
    for clause in map(str.strip, (CHINESE_CLAUSE if is_chinese else ENGLISH_CLAUSE).split(text)):
        if clause and not _REPEATS.search(clause) and not _DENIES.search(clause):
            value = _last_chinese(clause) if is_chinese else last_value(clause)
            if value and not _SAYS_WHETHER.fullmatch(value):
                found.append((not _TURNS_OUT.search(clause), value))
    return [value for _, value in sorted(found, key=lambda each: each[0])]


def value_of(clause: str) -> str:
    """What a clause says of its subject: the words behind its last link; all of a clause of a few words."""
    plain = without_afterthought(clause.strip())
    if not LINK.search(plain):
        return "" if PRONOUN.search(plain) else short(plain)
    return next(_behind_links(plain), "")


def last_value(clause: str) -> str:
    """The words behind the last link of an English clause; empty where they are too many, or it has no link."""
    return next(_behind_links(without_afterthought(clause.strip())), "")


def _behind_links(clause: str) -> Iterator[str]:
    for link in reversed(list(LINK.finditer(clause))):
        value = short(_DOING.sub("", _GOES_ON.sub("", clause[link.end() :]).strip()))
        if value and not PRONOUN.fullmatch(value.split()[0]):
            yield value


def _last_chinese(clause: str) -> str:
    links = list(_CHINESE_BEING.finditer(clause)) or list(CHINESE_LINK.finditer(clause))
    value = re.sub(r"[了啦呢啊的嘛]+$", "", clause[links[-1].end() :]) if links else ""
    return value if 0 < len(value) <= MOST_CHARACTERS else ""


def without_afterthought(clause: str) -> str:
    """A clause without “now”, “any more”, “two weeks ago” at its end."""
    return _AFTERTHOUGHT.sub("", clause)


def cut(value: str) -> str:
    """A value without its article and what goes on behind it; empty where it is still long."""
    return short(_ARTICLE.sub("", without_afterthought(_GOES_ON.sub("", value)).strip()))


def short(value: str) -> str:
    """A value of a few words, without marks; empty where it is longer."""
    return value.strip(" *\"'“”!?") if 0 < len(value.split()) <= _MOST_WORDS else ""
