"""Words that name a time without a date: the last visit, a moment ago, lately, before; this morning, 昨晚."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.time_reference.normalisation import JUST_NOW, LAST_TALK, LAST_VISIT, RECENT
from services.time_reference.question_rules import one_of

_TALK = "(?:conversation|chat|session|discussion|talk|exchange)s?"
_TO_OTHERS = r"(?! (?:to|with|between|of|i had with) (?!you\b|u\b|us\b|me\b))"
_PAST = one_of(
    "said, told, asked, mentioned, wrote, talked, suggested, recommended, explained, discussed, gave, sent",
    "showed",
    "listed, described",
)
_SAYING = one_of(
    "talking, saying, telling, discussing, asking, chatting, explaining, describing, mentioning, suggesting",
    "recommending, speaking, arguing, complaining",
)
_HERE = "(?:this|our|the|today's) (?:chat|conversation|thread|session|talk|discussion)"
_FEW = r"(?:an?|one|two|a few|a couple of|several|\d+)"
_MOMENT = "(?:moment|minute|min|second|sec|bit|while|message)s?"
_OTHER_EARLIER = "(?! (?:today|this|that|than|in|on|version|model|draft))"

_LAST_TALK = (
    r"(?:上一?[次回]|前一[次回]|之前那[次回]|上一?轮)的?(?:聊天|对话|谈话|交流|见面|碰面)(?:的时候|时)?"
    r"|(?<!since )\b(?:we|you and i) last (?:talk(?:ed)?|spoke|speak|chat(?:ted)?|met|discussed)\b"
    r"|\blast we (?:talked|spoke|chatted)\b"
    rf"|(?<!since )\bi last (?:talked|spoke|chatted) (?:to|with) you\b"
    r"|(?:最后|最近)一[次回](?:跟我|和我|跟你|和你)?(?:聊天|对话|说话|聊)"
    r"|\b(?:the )?last time (?:(?:we|you and i) (?:talked|spoke|chatted|met|had a chat|discussed)\b"
    rf"|i (?:talked|spoke|chatted) (?:to|with) you\b){_TO_OTHERS}"
    rf"|\bour (?:very )?(?:last|previous|prior|latest) {_TALK}\b{_TO_OTHERS}"
    r"|\b(?:the |my |your )?(?:last|previous|prior) (?:conversation|chat|session)\b(?: with you| we had)?"
    rf"{_TO_OTHERS}"
)
_LAST_VISIT = r"上一?[次回]|前一[次回]|之前那[次回]|\b(?:the )?last time(?![a-z])"
# "just" alone may mean "only": there a verb of saying has to follow it in the past, or "did" to come before.
_JUST_NOW = (
    r"刚才|刚刚|方才|刚(?=[说提聊讲问])|(?<=[你我们])前面(?=[说提聊讲问给写列])|\bjust now(?![a-z])"
    rf"|\b(?:just )?{_FEW} {_MOMENT} ago\b|\b(?:just )?(?:moments|minutes|seconds) ago\b"
    rf"|\b(?:a bit |a little )?earlier (?:on )?(?:in|during) {_HERE}\b"
    rf"|\b(?:at the (?:start|beginning|top) of|above in) {_HERE}\b"
    rf"|\b(?:a bit |a little )?earlier{_OTHER_EARLIER}\b"
    rf"|\bjust(?= (?:{_PAST}|\w+ed)\b)|just(?= {_SAYING}\b)|(?:(?<=\bdid i )|(?<=\bdid we )|(?<=\bdid you )"
    rf"|(?<=\bdid u ))just\b"
)
_RECENT = (
    r"最近(?!一[次回]|[的]?一?[次回]|[两三四五六七八九十几\d])|近来|近期|这阵子|这段时间|这些天|这几天|这些日子|前阵子|前段时间|前些日子"
    r"|\b(?:lately|recently|of late|these days|(?:over |in )?(?:the )?(?:past|last) (?:little )?while"
    r"|in recent (?:days|weeks))\b"
)
PAST = re.compile(
    r"之前|以前|先前|早前|曾经|那时候?|当时|那会儿|早些时候|原先"
    r"|\b(?:previously|back then|(?:at|around) that time|in the past|a while (?:ago|back)|(?:ages|long) ago"
    r"|way back|earlier|once|before(?=\W*$|[,?.!;]))",
    re.IGNORECASE,
)
"""The past without any bounds."""
_PATTERNS = tuple(
    (mark, re.compile(pattern, re.IGNORECASE))
    for mark, pattern in (
        (LAST_TALK, _LAST_TALK),
        (LAST_VISIT, _LAST_VISIT),
        (JUST_NOW, _JUST_NOW),
        (RECENT, _RECENT),
    )
)


@dataclass(frozen=True, slots=True)
class Undated:
    """Words that name such a time, by the mark that stands for them, and their place."""

    mark: str
    begin: int
    stop: int


def undated(text: str) -> Iterator[Undated]:
    """All of them; where two overlap, the one that says more begins first or is longer."""
    for mark, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield Undated(mark, match.start(), match.end())


Hours = tuple[int, int]
"""First and last local hour; one beyond 24 belongs to the night that follows."""

_CHINESE: tuple[tuple[str, Hours], ...] = (
    ("凌晨|半夜|后半夜", (0, 6)),
    ("清晨|早晨|早上|今早|一早|清早", (4, 12)),
    ("上午", (6, 13)),
    ("中午|午饭", (11, 15)),
    ("下午|午后", (12, 19)),
    ("傍晚|黄昏", (16, 21)),
    ("晚上|夜里|夜晚|深夜|睡前|临睡前|[昨今前当]晚|晚饭", (17, 28)),
)
_ENGLISH: tuple[tuple[str, Hours], ...] = (
    ("early hours|small hours", (0, 6)),
    ("morning|breakfast", (4, 13)),
    ("noon|midday|lunch(?:time)?", (11, 15)),
    ("afternoon", (12, 19)),
    ("evening|dinner(?:time)?", (16, 28)),
    ("night|tonight|bedtime", (17, 28)),
)
_PARTS = {f"p{number}": hours for number, (_, hours) in enumerate((*_CHINESE, *_ENGLISH))}
_NAMED = re.compile(
    "|".join(
        [f"(?P<p{number}>{words})" for number, (words, _) in enumerate(_CHINESE)]
        + [rf"\b(?P<p{len(_CHINESE) + number}>{words})\b" for number, (words, _) in enumerate(_ENGLISH)]
    ),
    re.IGNORECASE,
)
_BESIDE = re.compile(r"(?:的|那天|,)?\s?(?:in the |at |during )?(?=[a-z\u3400-\u9fff])", re.IGNORECASE)


def hours_named(text: str, begin: int, stop: int) -> Hours | None:
    """The part of a day that the words of a time name, or those right behind them; None where neither names one.

    Args:
        begin: where the words of the time begin in it.
        stop: where they end.
    """
    within = _NAMED.search(text, begin, stop)
    if within is None:
        beside = _BESIDE.match(text, stop)
        within = _NAMED.match(text, beside.end() if beside else stop)
    return _PARTS[within.lastgroup] if within and within.lastgroup else None
