"""One spelling for the ways in which people write when something is to happen: 明早 becomes 明天早上.

Texts are in lower case and simplified characters. Only spelling changes here; what is left is read elsewhere.
"""

import re
from collections.abc import Sequence

from services.time_reference.normalisation import folded, lowered
from services.time_reference.numerals import CHINESE_NUMERAL, ENGLISH_ONES

_ONES = "|".join(sorted((word for word in ENGLISH_ONES if word != "zero"), key=len, reverse=True))
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ORDINAL = r"(?:first|second|third|fourth|last|\d{1,2}(?:st|nd|rd|th))"
_WEEKDAYS = {
    **{"mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "weds": "wednesday"},
    **{"thu": "thursday", "thur": "thursday", "thurs": "thursday", "fri": "friday", "sat": "saturday"},
    **{"sun": "sunday"},
}
_SHORT_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})\b\.?")
_N = CHINESE_NUMERAL
_WEEK = "周|星期|礼拜"
_LISTED = re.compile(rf"({_WEEK})([一二三四五六日天])[、,和]\s?([一二三四五六日天])(?![{_N[1:-1]}月号日])")

_REPLACED: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        # half eight, 6.45, 1700 hours; nxt
        (rf"\bhalf (?=(?:\d{{1,2}}|{_ONES})\b)", "half past "),
        (r"(?<![\d.:])(?<!\bon )([01]?\d|2[0-3])\.([0-5]\d)(?![\d.])", r"\1:\2"),
        (r"\b([01]\d|2[0-3])([0-5]\d) ?(?:hours|hrs|h)\b", r"\1:\2"),
        (r"(?<![ ,])[ ,]{1,4}(?:please|pls|plz)$", ""),
        (r"\bnxt\b", "next"),
        (r"\beveryday\b", "every day"),
        (r"\bfirst thing\b(?: in the morning)?", "in the morning"),
        # a week on Thursday, Thursday week; on Mondays, weekday mornings, Monday to Friday
        (rf"(?<!every )(?<!each )\b(a|one|two|three) weeks? on ({_WEEKDAY})\b", r"\1 weeks from \2"),
        (rf"\b({_WEEKDAY}) week\b", r"a week from \1"),
        (rf"\bon ({_WEEKDAY})s\b", r"every \1"),
        (rf"\b(?:on )?({_WEEKDAY}|weekday) (morning|afternoon|evening|night)s\b", r"every \1 \2"),
        (r"\b(?:on )?weekends\b", "every saturday and sunday"),
        (r"\b(?:every )?monday(?: to | through | thru | ?[-–] ?)friday\b", "every weekday"),
        # the 1st of every month, every month on the first Monday
        (
            rf"\b(?:on )?(?:the )?({_ORDINAL}(?: \w+day| day)?) (?:of|in) (?:every|each) (month|year)\b",
            r"every \1 of the \2",
        ),
        (rf"\b(?:every|each) month on the ({_ORDINAL} (?:{_WEEKDAY}|day))\b", r"every \1 of the month"),
        # 明早, 每晚, 周六早八, 星期六晚八点
        (r"听朝早?", "明天早上"),
        (r"今朝早?", "今天早上"),
        (r"朝头?早", "早上"),
        (r"[晏下][昼晝]", "下午"),
        (r"上[昼晝]", "上午"),
        (r"([明今后每当听])[天日]?([早晚])(?![上晨间饭餐])", r"\1天\2上"),
        (rf"(^|[\s,一二三四五六日天末节夕])([早晚])(?={_N})", r"\1\2上"),
        (rf"([早晚]上)({_N}{{1,2}})(?![{_N[1:-1]}点时:号日月个分])", r"\1\2点"),
        (r"听天", "明天"),
        # 差一刻五点; 逢周三; 周一到周五; 八月二十号 of the calendar that is meant anyway
        (rf"差(一刻|{_N}{{1,3}}分?钟?)到?({_N}{{1,3}})点", r"\2点差\1"),
        (rf"逢(?={_WEEK})", "每"),
        (rf"每?个?(?:{_WEEK})一(?:到|至|-|~)(?:{_WEEK})?五", "每个工作日"),
        (r"国历|公历|阳历|新历", ""),
    )
)


def written_out(said: str) -> str:
    """Return a text that says when, in one spelling."""
    text = _SHORT_WEEKDAY.sub(lambda found: _WEEKDAYS[found[1]], lowered(folded(said.strip())))
    for pattern, written in _REPLACED:
        text = pattern.sub(written, text)
    while listed := _LISTED.sub(r"\1\2和\1\3", text):
        if listed == text:
            break
        text = listed
    return text
