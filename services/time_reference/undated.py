"""Words that name a time without a date: the visit before this one, the talk at it, a moment ago."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.time_reference.wording import JUST_NOW, LAST_TALK, LAST_VISIT

_TALK = "(?:conversation|chat|session|discussion|talk|exchange)s?"
_TO_OTHERS = r"(?! (?:to|with|between|of|i had with) (?!you\b|u\b|us\b|me\b))"
_PAST = "(?:said|told|asked|mentioned|wrote|talked|suggested|recommended|explained|discussed|gave|sent|showed|listed|described)"
_HERE = "(?:this|our|the|today's) (?:chat|conversation|thread|session|talk|discussion)"

_PATTERNS = (
    (
        LAST_TALK,
        re.compile(
            r"(?:上一?[次回]|前一[次回]|之前那[次回]|上一?轮)的?(?:聊天|对话|谈话|交流)(?:的时候|时)?"
            rf"|\b(?:the )?last time (?:(?:we|you and i) (?:talked|spoke|chatted|met|had a chat|discussed)\b|i (?:talked|spoke|chatted) (?:to|with) you\b){_TO_OTHERS}"
            rf"|\bour (?:very )?(?:last|previous|prior|latest) {_TALK}\b{_TO_OTHERS}"
            rf"|\b(?:the |my |your )?(?:last|previous|prior) (?:conversation|chat|session)\b(?: with you| we had)?{_TO_OTHERS}",
            re.IGNORECASE,
        ),
    ),
    (LAST_VISIT, re.compile(r"上一?[次回]|前一[次回]|之前那[次回]|\b(?:the )?last time\b", re.IGNORECASE)),
    (
        JUST_NOW,
        re.compile(
            r"刚才|刚刚|方才|刚(?=[说提聊讲问])"
            r"|\bjust now\b|\b(?:just )?(?:a|one|two|a few|a couple of|several|\d+) (?:moment|minute|min|second|sec|bit|while|message)s? ago\b"
            r"|\b(?:just )?(?:moments|minutes|seconds) ago\b"
            rf"|\b(?:a bit |a little )?earlier (?:on )?(?:in|during) {_HERE}\b|\b(?:at the (?:start|beginning|top) of|above in) {_HERE}\b"
            r"|\b(?:a bit |a little )?earlier(?! (?:today|this|that|than|in|on|version|model|draft))\b"
            rf"|\bjust(?= {_PAST}\b)|(?:(?<=\bdid i )|(?<=\bdid we )|(?<=\bdid you )|(?<=\bdid u ))just\b",
            re.IGNORECASE,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Undated:
    """Words that name such a time, by the mark that stands for them, and their place."""

    mark: str
    begin: int
    stop: int


def undated(text: str) -> Iterator[Undated]:
    """All of them; where two overlap, the one that says more comes first."""
    for mark, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield Undated(mark, match.start(), match.end())
