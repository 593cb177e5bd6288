"""Kinds of messages by subject and purpose: what they ask, order or state. Rules for Chinese and English.

After "Translate …", "What is …" or 写一篇…, a task and its material follow.
"""

import re

from services.text.caches import text_cache
from services.text.cue_words import ASKS, PLEASANTRIES, REFERS_BACK
from services.text.language import SEMICOLONS, Language, language_of, sentences
from services.text.tokenizer import simplified, simplified_text

_RUN = re.compile(r"[^\W_]+")
_ENGLISH = re.compile(r"(?:[^\W_]|')+")
_LONGEST_PLEASANTRY = 4
_LONGEST_SMALL_TALK = 200
"""Maximum length of small talk in characters, however often it repeats itself."""

# A question such as "How do I cook rice" says nothing about the person who asks.
_REQUESTS_OF_ONE = re.compile("帮我|给我|教我|跟我|让我|告诉我|提醒我|我想|我该|我要|我能|我可以")
_OWN = frozenset(["my", "mine", "our", "ours"])
_OF_ONE = re.compile(
    r"\b(?:did|have|had|was|am|were) (?:i|we)\b"
    r"|\bdo (?:i|we) (?:like|love|have|prefer|own|live|work|hate|usually)\b"
    r"|\b(?:i|we) (?:said|told|mentioned|went|had|was|were|am|have|bought|like|love|prefer)\b"
)

_OF_THE_ASSISTANT: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:did|have|had|were|do) you\b|\byou (?:said|told|mentioned|recommended|suggested|gave|wrote|"
        r"explained|listed|showed|taught|made|advised|proposed|came up)\b|\byour (?:answer|advice|suggestion|"
        r"recommendation|recipe|idea|list|plan)\b"
    ),
    "zh": re.compile(
        r"你[^，。？！,?!]{0,6}?(?:说[过的]|讲[过的]|提到|提[过的]|推荐|建议|写的|列的|教[我过的]|介绍|给我的|告诉我的|解释|安排的|"
        r"回答)|你的(?:回答|建议|推荐|方案|答案|菜谱)"
    ),
}

_IN_GENERAL: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"^(?:so |and |ok |please )?(?:how (?:do|does|can|should|would|could|to)\b(?! (?:i|we) (?:usually|"
        r"normally|always|feel|like|know|take|get)\b)|"
        r"what(?:'s| is| are) (?:an? |the (?:difference|meaning|definition)|the best way)|"
        r"what does .* (?:mean|stand for)|why (?:do|does|is|are) (?!my\b|i\b|we\b)|explain\b|define\b)"
    ),
    "zh": re.compile(
        r"怎么(?!样|了|啦|受|来|回事|称呼|会|叫)[\u4e00-\u9fff]|如何|什么是|是什么意思|啥意思|的(?:区别|定义|原理|步骤|做法)"
    ),
}

_LONGEST_TOPIC = 5
"""Maximum characters before 呢 in a short question (我妈妈呢); after longer text it also ends statements."""

_ASKS_AFTER = re.compile(
    r"(?:(?:wait|ok|okay|so|and|but|hey|hi|hello|lol|oh|um|well|please|btw|by the way|also|again|on|in|at|for|to|"
    r"from|with|by|of|about)\b[\s,.!]*){0,12}"
    r"(?:wh?at|which|whe(?:n|re)|who[ms]?e?|why|how)(?:'?s|'?re|'?ll|'?d|'?m)?\b"
)
"""A question word after the opening of a message, including short forms and colloquial spelling."""
_ASKS_NOTHING: dict[Language, re.Pattern[str]] = {
    # Question words that mean anything or nothing: 什么都吃, 不管谁来, 没什么忌口, 好几次.
    "zh": re.compile(
        r"(?:不管|无论|不论|任凭|随便)[^，,。.！!？?；;]*"
        r"|(?:什么|啥|谁|哪|怎么|多[少大久高长])[^，,。.！!？?；;]{0,8}?[都也]"
        r"|(?:没有?|不)(?:什么|啥|怎么|多少|几)"
        r"|[好十这那前]几|几[十百千万]|多少(?:有点|得|还是)"
    ),
    # “When I was five, …”, “What a day!”
    "en": re.compile(
        r"(?:wh?at an? |when (?:i|we|he|she|it|they|i'm|we're|he's|she's|it's|they're|my|our|his|her|their|the)\b)"
    ),
}
"""Sentences that look like questions but ask nothing, unless they end with a question mark."""

_ENGLISH_VERBS = (
    "add analy[sz]e answer arrange assume brainstorm build calculate categori[sz]e change check choose classify "
    "combine come_up_with compare complete compose compute construct continue convert correct create decide "
    "define describe design detect determine develop discuss draft edit estimate evaluate examine expand explain "
    "extract fill_in find fix format generate give given group identify imagine implement improve in_this_task "
    "list make match mention name order organi[sz]e outline paraphrase perform plan pretend proofread propose "
    "provide rank rate read recommend refactor rephrase replace respond rewrite select show simplify solve sort "
    "state suggest summari[sz]e tell_me tell_if tell_whether translate turn use verify write "
)
"""Verbs that begin an order; a _ stands for a space."""
_CHINESE_VERBS = (
    "写 撰写 编写 起草 翻译 改写 重写 润色 续写 仿写 总结 概括 归纳 列出 列举 解释 说明 "
    "描述 介绍 讲讲 讲解 分析 比较 对比 计算 判断 评价 评估 给出 提供 生成 创建 创作 设计 "
    "制定 提取 找出 选出 选择 回答 证明 推荐 扮演 分类 排序 补充 修改 纠正 检查 查找 告诉我 "
    "谈谈 举例 造句 填空 推断 推理 阐述 论述 指出 简述 识别 确定 实现 转换 标注 预测 查一下 "
    "查下 搜一下 搜下 "
)
_POLITE_ENGLISH = r"\W{0,40}(?:(?:please|can you|could you|would you|now|then|also|and|ok|hi|hello|hey)\W+)*"
_POLITE_CHINESE = (
    r"\W{0,40}(?:[你您]好\W*)?"
    r"(?:(?:请问|请|麻烦你?|帮我|帮忙|你?能不能|你?能否|可以|给我|现在|然后|接下来|再|并)\W*)*"
)
_ENGLISH_ORDER = rf"{_POLITE_ENGLISH}(?:{'|'.join(_ENGLISH_VERBS.split()).replace('_', ' ')})\b"
_CHINESE_ORDER = rf"(?:{'|'.join(_CHINESE_VERBS.split())})(?![了过])"
_PLAIN_ORDER = re.compile(
    rf"\A(?:{_ENGLISH_ORDER}(?!:| (?:of|is|was|are|were)\b)|{_POLITE_CHINESE}{_CHINESE_ORDER})"
)
"""An order without circumstances before it, because those may also open a statement (作为独生女，…)."""
_ORDER = re.compile(
    rf"\A(?:{_ENGLISH_ORDER}"
    rf"|{_POLITE_CHINESE}(?:根据|基于|针对|按照|关于|通过|作为|假设|想象|给定|已知|设|阅读|参考|结合"
    r"|(?:[把将用以按从在对为向就].{1,40}?|给[^,，。]{1,12}?|重新|详细|简要|简单|分别|逐步|一步步)?"
    rf"{_CHINESE_ORDER}))"
)
_TELL = re.compile(
    rf"\A(?:{_POLITE_ENGLISH}"
    r"(?:(?:tell|remind|show|read) (?:me|us)|(?:list|explain|describe|look up|summari[sz]e|recap)\b)"
    rf"|{_POLITE_CHINESE}(?:再|把.{{1,20}}?)?(?:跟我|给我|对我)?"
    r"(?:告诉我|提醒我一?下|说说|说一下|讲讲|讲一下|念|列出|列一下|查一?下|查查|看一?下|看看|总结|解释))"
)


def asks(message: str, language: Language) -> bool:
    """Return whether the message asks something, by its question mark or its words."""
    if language == "zh":
        folded = simplified(message).rstrip()
        if folded.endswith(("?", "？")) or (folded.endswith("呢") and len(folded) <= _LONGEST_TOPIC):
            return True
        return has_cue(_ASKS_NOTHING[language].sub("", folded), ASKS[language], language)
    if "?" in message:
        return True
    folded = message.lower().replace("’", "'").lstrip()
    if _ASKS_NOTHING[language].match(folded):
        return False
    first = english_words(message)[:1]
    return _ASKS_AFTER.match(folded) is not None or (bool(first) and first[0] in ASKS[language])


def refers_back(message: str, language: Language) -> bool:
    """Return whether the message may refer to something named before."""
    return has_cue(simplified(message), REFERS_BACK[language], language)


def is_about_oneself(message: str, language: Language) -> bool:
    """Return whether a message is about the user's own affairs ("my", "did I", 我的), not only a wish for work."""
    folded = message.lower()
    if language == "zh":
        return "我" in _REQUESTS_OF_ONE.sub("", simplified(folded))
    return not _OWN.isdisjoint(english_words(folded)) or bool(_OF_ONE.search(folded))


def is_about_the_assistant(message: str, language: Language) -> bool:
    """Return whether a message is about what the assistant said or did ("what did you recommend", 你推荐的)."""
    return bool(_OF_THE_ASSISTANT[language].search(simplified(message.lower())))


def asks_in_general(message: str) -> bool:
    """Return whether a message asks for general knowledge (how do I boil rice, 什么是复利)."""
    return bool(_IN_GENERAL[language_of([message])].search(simplified(message.strip().lower())))


def is_small_talk(message: str) -> bool:
    """Return whether a message consists of courtesies only ("thanks!", "好的")."""
    if len(message) > _LONGEST_SMALL_TALK:
        return False
    language = language_of([message])
    if language == "zh":
        return all(_is_all_pleasantries(run) for run in _runs(simplified(message)))
    return all(word in PLEASANTRIES["en"] for word in english_words(message))


def has_cue(message: str, cues: frozenset[str], language: Language) -> bool:
    """Return whether a message has one of the cues: anywhere in Chinese, as a whole word in English."""
    if language == "zh":
        return any(cue in message for cue in cues)
    return not cues.isdisjoint(english_words(message))


@text_cache(64)
def english_words(message: str) -> tuple[str, ...]:
    """Return the words of an English message in lower case; contractions stay whole."""
    # A turn asks several such questions about its message, one after the other.
    return tuple([part.strip("'") for part in _ENGLISH.findall(message.lower().replace("’", "'"))])


def _runs(message: str) -> list[str]:
    return [run.lower() for run in _RUN.findall(message)]


def _is_all_pleasantries(run: str) -> bool:
    """Return whether a text can be split into courtesies, trying the longest first."""
    if run.isascii():
        return run in PLEASANTRIES["en"]
    at = 0
    while at < len(run):
        for length in range(_LONGEST_PLEASANTRY, 0, -1):
            if run[at : at + length] in PLEASANTRIES["zh"]:
                at += len(run[at : at + length])
                break
        else:
            return False
    return True


def asks_for_work(sentence: str) -> bool:
    """Return whether a folded sentence begins with an order for work."""
    return _ORDER.match(sentence) is not None


def asks_to_be_told(sentence: str) -> bool:
    """Return whether a folded sentence begins with an order to tell or show something (tell me …, 告诉我…)."""
    return _TELL.match(sentence) is not None


_MOST_CHARACTERS = 2_000
_SHORT, _KEPT = 500, 2_000
"""Longest text, in characters, whose answer is cached, and how many are: turns recall the same texts again."""


_CLAUSE = re.compile(r"[,，;；:：]|\s[-–—]+\s|——")
_FIRST_PERSON = frozenset(["i", "i'm", "i've", "i'd", "i'll", "we", "we're", "we've", "we'll", *_OWN])
_LEAST = 5
"""Minimum length of a clause that tells something about somebody: Chinese characters, or English words."""


def states_something(text: str) -> bool:
    """Return whether a message states something, even if it then asks ("I leave on Friday, can you …")."""
    return (_kept if len(text) <= _SHORT else _states_something)(text)


def _states_something(text: str) -> bool:
    language = language_of([text])
    for sentence in sentences(text[:_MOST_CHARACTERS], SEMICOLONS):
        said = sentence.text.strip()
        if not said or is_small_talk(said):
            continue
        if sentence.asks or (not sentence.mark and asks(said, language)):  # 我不知道怎么走。 states something
            if any(_tells_something(clause.strip(), language) for clause in _CLAUSE.split(said)[:-1]):
                return True
            continue
        folded = simplified_text(said).replace("’", "'")
        ordered = _PLAIN_ORDER.match(folded) and not is_about_oneself(said, language)
        if not ordered and not asks_to_be_told(folded):
            return True
    return False


def _tells_something(clause: str, language: Language) -> bool:
    """Return whether a clause before a question tells something; in the first person a short one may."""
    folded = simplified_text(clause)
    if asks(clause, language) or _PLAIN_ORDER.match(folded) or asks_to_be_told(folded):
        return False
    if language == "zh":
        return len(clause) >= _LEAST
    words = english_words(clause)
    return len(words) >= _LEAST or not _FIRST_PERSON.isdisjoint(words)


_kept = text_cache(_KEPT)(_states_something)
