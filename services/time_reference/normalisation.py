"""Messages prepared for rules, and words that name a time without a date: 上次, a moment ago, 昨晚.

A prepared message has as many characters as before, but one spelling for each thing: traditional characters become
simplified, full-width letters plain, curly apostrophes straight. Quotations and code are blotted out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

QUOTED = "\ue000"
"""Mark that replaces every character of a quotation, a title or code."""
DAYS, LAST_VISIT, LAST_TALK, JUST_NOW, RECENT = "\ue001", "\ue002", "\ue003", "\ue004", "\ue005"
"""Marks that replace every character of words for days, the last visit, its talk, a moment ago, or lately."""
TIME = f"[{DAYS}{LAST_VISIT}{LAST_TALK}{JUST_NOW}{RECENT}]"

_RECENT_DAYS = timedelta(days=13)
"""Days before today that "lately" covers; with today, two weeks."""
_LONGEST = 500
"""Maximum characters of a message that is read whole; of a longer one the beginning and the end are read."""
_END = 250

_TRADITIONAL = (
    "們我聊麼什說過記還錄總結話題對問個討論誰嗎給幫請講談當晚後週個訴應諾釋紹報買體詳細幾點價錢號碼電話項目進"
    "復習歸納顧繼續這會兒剛纔從處樣為與發約定決換寫議見時間沒關於現實認識備內容選單據誤網頁圖書館餐廳開聽讀聲"
    "來著東裡裏倆讓學傳訊鐘種歲該誇罵勸舉譯唸託煩錯標題劃練習證師試驗級輪轉複簡單結語臺歡樂舊薦夢診樓訂畫戲難"
    "禮兩尋農節氣頭條線機車隊門數紀類齡輕饋雙國產運裝員課錶無"
)
_SIMPLIFIED = (
    "们我聊么什说过记还录总结话题对问个讨论谁吗给帮请讲谈当晚后周个诉应诺释绍报买体详细几点价钱号码电话项目进"
    "复习归纳顾继续这会儿刚才从处样为与发约定决换写议见时间没关于现实认识备内容选单据误网页图书馆餐厅开听读声"
    "来着东里里俩让学传讯钟种岁该夸骂劝举译念托烦错标题划练习证师试验级轮转复简单结语台欢乐旧荐梦诊楼订画戏难"
    "礼两寻农节气头条线机车队门数纪类龄轻馈双国产运装员课表无"
)
_CANTONESE, _MANDARIN = "喺哋咗啲乜嘢係嘅佢嗰冇畀俾咩閏臘曆陰聖", "在们了些什么是的他那没给给啥闰腊历阴圣"
FOLD = {
    **{ord(old): new for old, new in zip(_TRADITIONAL, _SIMPLIFIED, strict=True)},
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, f"\u3000\u00a0\t\r{QUOTED}{DAYS}{LAST_VISIT}{LAST_TALK}{JUST_NOW}{RECENT}"), " "),
    **dict.fromkeys(map(ord, "’‘´"), "'"),
    **{ord("您"): "你", ord("妳"): "你", ord("､"): ","},
    **{ord(old): new for old, new in zip(_CANTONESE, _MANDARIN, strict=True)},
}
"""Translation of characters in place: to simplified Mandarin, plain letters and digits, straight apostrophes."""
_QUOTATION = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|“[^“”\n]*”|\"[^\"\n]*\"|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》|(?<![a-z0-9])'[^'\n]{3,}'(?![a-z0-9])"
    r"|^[^\S\n]*>[^\n]*",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？;；\n]")


def one_of(*words: str) -> str:
    """Return a pattern for any of these, which are patterns themselves, separated by commas."""
    return "(?:" + "|".join(re.split(r",\s+", ", ".join(words).strip())) + ")"


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
# "just" may mean "only": it counts only before a verb of saying in the past, or after "did".
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
"""Words for an unlimited past."""
_PATTERNS = tuple(
    (mark, re.compile(pattern, re.IGNORECASE))
    for mark, pattern in (
        (LAST_TALK, _LAST_TALK),
        (LAST_VISIT, _LAST_VISIT),
        (JUST_NOW, _JUST_NOW),
        (RECENT, _RECENT),
    )
)


def bounded(message: str) -> str:
    """Return the message, or the first and last whole sentences of a long one."""
    if len(message) <= _LONGEST:
        return message
    head, tail = message[:_END], message[-_END:]
    ends = [match.end() for match in _SENTENCE_END.finditer(head)]
    begins = _SENTENCE_END.search(tail)
    return (head[: ends[-1]] if ends else "") + "\n" + (tail[begins.end() :] if begins else "")


def folded(text: str) -> str:
    """Return the text with one spelling for each thing; case stays."""
    return _QUOTATION.sub(lambda found: QUOTED * len(found[0]), text.translate(FOLD)).replace("`", "'")


def lowered(text: str) -> str:
    """Return the text in lower case; the few letters whose lower case has two characters stay."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


@dataclass(frozen=True, slots=True)
class Time:
    """A time that a text names: its mark, its place, and its days if it is days."""

    mark: str
    begin: int
    stop: int
    start: date | None = None
    end: date | None = None


def undated(text: str, today: date) -> Iterator[Time]:
    """Yield all times without a date; where two overlap, the one that says more begins earlier or is longer."""
    for mark, pattern in _PATTERNS:
        days = (today - _RECENT_DAYS, today) if mark == RECENT else (None, None)
        for match in pattern.finditer(text):
            yield Time(mark, match.start(), match.end(), *days)


Hours = tuple[int, int]
"""First and last local hour; an hour from 24 on belongs to the night that follows."""


_PARTS_OF_DAY: tuple[tuple[str, Hours], ...] = (
    (r"凌晨|半夜|后半夜|\b(?:early|small) hours\b", (0, 6)),
    ("清晨|早晨|早上|今早|一早|清早", (4, 12)),
    (r"\b(?:morning|breakfast)\b", (4, 13)),
    ("上午", (6, 13)),
    (r"中午|午饭|\b(?:noon|midday|lunch(?:time)?)\b", (11, 15)),
    (r"下午|午后|\bafternoon\b", (12, 19)),
    ("傍晚|黄昏", (16, 21)),
    (r"\b(?:evening|dinner(?:time)?)\b", (16, 28)),
    (r"晚上|夜里|夜晚|深夜|睡前|临睡前|[昨今前当寻琴听]晚|晚饭|\b(?:night|tonight|bedtime)\b", (17, 28)),
)
_NAMED = re.compile(
    "|".join(f"(?P<p{place}>{words})" for place, (words, _) in enumerate(_PARTS_OF_DAY)), re.IGNORECASE
)
_BESIDE = re.compile(r"(?:的|那天|,)?\s?(?:in the |at |during )?(?=[a-z\u3400-\u9fff])", re.IGNORECASE)


def hours_named(text: str, begin: int, stop: int) -> Hours | None:
    """Return the part of the day in the words of a time, or right after them; None if neither names one.

    Args:
        begin: Place where the words of the time begin.
        stop: Place where they end.
    """
    within = _NAMED.search(text, begin, stop)
    if within is None:
        beside = _BESIDE.match(text, stop)
        within = _NAMED.match(text, beside.end() if beside else stop)
    return _PARTS_OF_DAY[int(within.lastgroup[1:])][1] if within and within.lastgroup else None


def parts_of_day(text: str) -> list[Hours]:
    """Return all parts of a day that a text names."""
    return [_PARTS_OF_DAY[int(each.lastgroup[1:])][1] for each in _NAMED.finditer(text) if each.lastgroup]


def part_of_day(text: str) -> tuple[Hours, int, int] | None:
    """Return the first part of a day that a text names, and where its words begin and end."""
    named = _NAMED.search(text)
    return (_PARTS_OF_DAY[int(named.lastgroup[1:])][1], *named.span()) if named and named.lastgroup else None
