"""Rules about a clause or a message whose time words are already replaced by marks."""

import re
from dataclasses import dataclass

from services.time_reference.normalisation import TIME, one_of


@dataclass(frozen=True, slots=True)
class Rules:
    """How people of one language refer to what was said before. Every pattern is searched in one clause."""

    talk: re.Pattern[str]
    """Words of the two with each other, and the time of them, be it stated, asked, or named in passing."""
    of_then: re.Pattern[str]
    """A question about what the two said, in the past and without a time: the clause beside it may name that."""
    within: re.Pattern[str]
    """The same with a clause between that tells what was said: the time is of the talk if it is surely over."""
    elsewhere: re.Pattern[str]
    """The clause is a text to work on, a tale to write, or a supposition; then nothing after it counts either."""
    said: re.Pattern[str]
    """Words of the two with each other, with or without a time."""
    intends: re.Pattern[str]
    """What is to be said yet, where the time is one that is not over."""
    detail: re.Pattern[str]
    """Asks for what a summary may lack."""
    time_alone: re.Pattern[str]
    """The whole clause is the time of the next."""


_TIME = f"{TIME}++"

_CHINESE_BEFORE = one_of(
    "你好呀?, 嗨, 哈喽, 早上好, 下午好, 晚上好, 早, 请问, 请, 麻烦, 那, 对了, 话说, 嗯, 你?还记得, 记不记得",
    "知不知道, 知道, 我忘了, 我不记得了?, 想知道, 我想, 能不能, 可不可以, 可以, 能, 你, 帮我, 给我, 跟我, 和我",
    "告诉我, 说说, 讲讲, 说一下, 回顾, 回忆, 总结, 概括, 梳理, 看看, 想想, 一下, 下, 在",
)
_CHINESE_AFTER = one_of(
    "呢, 呀, 啊, 来着, 吗, 吧, 呗, 谢谢你?, 麻烦了, 可以吗, 好吗, 我忘了, 忘了, 不记得了, 想不起来了?, 你?还?记得",
    "你?还?记不记得, 能告诉我, 告诉我",
)
_WE = "(?:我们(?:俩|两个)?|咱们?俩?|我俩|我[和跟]你|你[和跟]我|[和跟]你)"
_SPOKE = "(?:聊|谈|说|讲|讨论|谈论|交流|唠)(?:天|话)?[到过了的起]*"
_CHINESE_WHAT = "(?:一?些)?(?:什么|啥|哪些?|哪[里儿])(?:内容|话题|主题|事情?|东西|问题)?了?"
_CHINESE_TALK = "(?:聊天|对话|谈话|交流|聊的|谈的)(?:的?(?:记录|内容|话题|主题|要点|重点|摘要|总结))?"
_CHINESE = (
    f"{_WE}?的?{_TIME}{_WE}?(?:都|一共|主要|具体|到底|究竟|还|有没有|有){{0,2}}{_SPOKE}(?:{_CHINESE_WHAT}|没有?)?"
    f"|{_WE}?的?{_TIME}的?(?:{_WE}的?)?{_CHINESE_TALK}(?:是|有|讲了?|说了?)?(?:{_CHINESE_WHAT})?"
)

_ENGLISH_BEFORE = one_of(
    "hi there, hi, hey there, hey, hello, yo, good morning, good evening, morning, so, and, well, ok, okay, um",
    "sorry to bother you, sorry, please",
    "quick question, just, btw, by the way, can you, could you, would you, will you, do you, still, remember",
    "recall, know, tell me, remind me, show me, give me, i forgot, i forget, i can't remember, i don't remember",
    "i'd like to know, i want to know, i wonder, i was wondering, summari[sz]e, recap, a, the, quick, short",
    "summary, of, go over, about, but",
)
_ENGLISH_AFTER = one_of(
    "please, thanks, thank you, a lot, again, together, i forgot, i can't remember, do you remember, exactly",
    "then, remember, if anything, at all, anyway",
)
_AT = rf"(?:(?:on|in|over|during|from|at|of|for),? )?{_TIME}"
_ENGLISH_WHAT = "what(?: all| exactly| else| topics?| things?| stuff| subjects?| kind of things?)?"
_WE_SPOKE = (
    r"(?:(?:did|have|had|were|was it|'d) )?(?:we|you and i|you and me) (?:(?:all|both|even|ever|been|actually) )*"
    r"(?:talk(?:ed|ing)?|chat(?:ted|ting)?|sp[eo]ak(?:ing)?|spoke|discuss(?:ed|ing)?|cover(?:ed|ing)?|say|said)"
    r"(?: (?:about|over))?(?: (?:anything|much|something))?"
)
_ENGLISH_TALK = "(?:chats?|conversations?|discussions?|talks?|sessions?)"
_ENGLISH = (
    rf"(?:{_ENGLISH_WHAT} )?{_WE_SPOKE} {_AT}|{_AT},? (?:{_ENGLISH_WHAT} )?{_WE_SPOKE}"
    rf"|(?:what (?:was|were) )?(?:our |any )?{_ENGLISH_TALK}(?: about)?(?: we had)? {_AT}"
    rf"|(?:what (?:was|were) )?(?:our )?{_AT}(?:'s?)? {_ENGLISH_TALK}(?: about)?"
)
_BETWEEN = r"[\s,.!?:;。…~-]{0,20}"
_PLAIN = re.compile(
    rf"\A{_BETWEEN}(?:(?>(?:{_CHINESE_BEFORE}{_BETWEEN})*)(?:{_CHINESE}){_BETWEEN}(?:{_CHINESE_AFTER}{_BETWEEN})*"
    rf"|(?>(?:{_ENGLISH_BEFORE}\b{_BETWEEN})*)(?:{_ENGLISH}){_BETWEEN}(?:{_ENGLISH_AFTER}\b{_BETWEEN})*)"
)
_LONGEST = 120
"""Characters of a plain question, courtesies included."""


def is_plain(marked: str) -> bool:
    """Whether a message, in lower case and its times replaced by marks, asks only what was talked about then."""
    return len(marked) <= _LONGEST and _PLAIN.fullmatch(marked) is not None
