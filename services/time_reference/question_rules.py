"""Rules for a clause or a message whose words for times are already replaced by marks."""

import re
from dataclasses import dataclass

from services.time_reference.normalisation import TIME, one_of


@dataclass(frozen=True, slots=True)
class Rules:
    """Patterns for the ways in which one language refers to earlier talk; each is searched in one clause."""

    talk: re.Pattern[str]
    """Mention of talk between the two with its time, whether stated, asked or said in passing."""
    of_then: re.Pattern[str]
    """Question about past talk without a time: the neighbouring clause may name the time."""
    within: re.Pattern[str]
    """Talk with a clause between it and its time; it counts only if that time is surely over."""
    elsewhere: re.Pattern[str]
    """Mark of a text to work on, a story or a supposition; nothing after it counts."""
    said: re.Pattern[str]
    """Mention of talk between the two, with or without a time."""
    intends: re.Pattern[str]
    """Intention to say something at a time that is not over."""
    detail: re.Pattern[str]
    """Question about a detail that a summary may lack."""
    time_alone: re.Pattern[str]
    """Clause that consists of the time of the next clause."""


_TALK = "聊|对话|谈|咱|我们|[和跟]你|chats?|conversations?|discussions?|talks?|sessions?|we|our|you and i"
"""Words of which every matching clause has one."""
# Where one word begins another, the longer comes first.
_CHINESE = one_of(
    "你好呀?, 嗨, 哈喽, 早上好, 下午好, 晚上好, 早, 请问?, 麻烦了?, 那, 对了, 话说, 嗯, 谢谢, 呢, 呀, 啊, 来着",
    "吗, 吧, 呗, 能不能, 可不可以, 知不知道, 记不记得, 可以, 好吗, 能, 告诉, 记得, 知道, 忘了, 想不起来, 想, 一下",
    "下, 还, 不, 帮, 给, 看看, 你, 我, 咱, 们, 俩, 两个, 和, 跟, 聊天?, 谈论, 谈话?, 说, 讲, 讨论, 交流, 唠, 对话",
    "到底, 过, 到, 了, 的, 起, 都, 一共, 主要, 具体, 究竟, 有没有, 没?有, 是, 在, 一?些, 什么, 啥, 哪[里儿]",
    "哪些?, 内容, 话题, 主题, 事情?, 东西, 问题, 记录, [要重]点, 摘要, 总结, 概括, 回[顾忆], 梳理, 话",
)
_ENGLISH = one_of(
    "hi, there, hey, hello, yo, good, morning, evening, so, and, well, ok, okay, um, sorry, please, thanks?",
    "quick, a lot, just, btw, by the way, can, could, would, will, do, you, i, me, still, remember, recall, know",
    "tell, remind, show, give, forg[eo]t, can't, don't, i'd, like, want, wonder, was, were, summari[sz]e, recap",
    "summary, a, the, short, question, of, go, over, about, but, what, all, exactly, else, topics?, things?",
    "stuff, subjects?, kind, did, have, had, it, we, our, both, even, ever, been, actually, talk(?:ed|ing)?",
    "chat(?:ted|ting)?, sp[eo]ak(?:ing)?, spoke, cover(?:ed|ing)?, discuss(?:ed|ing)?, sa(?:y|id), anything, much",
    "something, chats?, conversations?, discussions?, talks?, sessions?, any, on, in, during, from, at, for, 's?",
    "again, together, then, if, anyway",
)
_OF_TALK = re.compile(_TALK)
_PLAIN = re.compile(rf"(?>(?:{TIME}|[\s,.!?:;。…~-]|{_CHINESE}|(?<![a-z]){_ENGLISH}(?![a-z]))+)")
_LONGEST = 120
"""Maximum characters of a plain question, including courtesies."""


def is_plain(marked: str) -> bool:
    """Return whether a message, in lower case and with marks for times, asks only what was talked about then."""
    if len(marked) > _LONGEST or not _OF_TALK.search(marked):
        return False
    return _PLAIN.fullmatch(marked) is not None
