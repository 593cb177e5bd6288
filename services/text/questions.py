"""Kinds of questions by subject and purpose. Rules for Chinese and English."""

import re

from services.text.caches import text_cache
from services.text.cue_words import ASKS, PLEASANTRIES, REFERS_BACK
from services.text.language import Language, language_of
from services.text.tokenizer import simplified

_RUN = re.compile(r"[^\W_]+")
_ENGLISH = re.compile(r"(?:[^\W_]|')+")
_LONGEST_PLEASANTRY = 4
_LONGEST_SMALL_TALK = 200
"""Characters beyond which a message is no small talk, whatever it repeats."""

# "How do I cook rice" says nothing about its speaker.
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


_ASKS_AFTER = re.compile(
    r"(?:(?:wait|ok|okay|so|and|but|hey|hi|hello|lol|oh|um|well|please|btw|by the way|also|again|on|in|at|for|to|"
    r"from|with|by|of|about)\b[\s,.!]*)*"
    r"(?:wh?at|which|whe(?:n|re)|who[ms]?e?|why|how)(?:'?s|'?re|'?ll|'?d|'?m)?\b"
)
"""A question word after the opening of a message, also shortened or in colloquial spelling."""
_ASKS_NOTHING: dict[Language, re.Pattern[str]] = {
    # Question words that stand for anything or nothing: 什么都吃, 不管谁来, 没什么忌口, 好几次.
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
"""What looks like a question and is none, unless its mark says so."""


def asks(message: str, language: Language) -> bool:
    """Whether the message asks something, by its mark or its words."""
    if language == "zh":
        folded = simplified(message)
        if folded.rstrip().endswith(("?", "？")):
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
    """Whether the message may refer to something named before."""
    return has_cue(message, REFERS_BACK[language], language)


def is_about_oneself(message: str, language: Language) -> bool:
    """Whether a message speaks of the user's own affairs ("my", "did I", 我的), beyond wanting something done."""
    folded = message.lower()
    if language == "zh":
        return "我" in _REQUESTS_OF_ONE.sub("", folded)
    return not _OWN.isdisjoint(english_words(folded)) or bool(_OF_ONE.search(folded))


def is_about_the_assistant(message: str, language: Language) -> bool:
    """Whether a message is about what the assistant said or did ("what did you recommend", 你推荐的)."""
    return bool(_OF_THE_ASSISTANT[language].search(simplified(message.lower())))


def asks_in_general(message: str) -> bool:
    """Whether a message asks for general knowledge (how do I boil rice, 什么是复利)."""
    return bool(_IN_GENERAL[language_of([message])].search(simplified(message.strip().lower())))


def is_small_talk(message: str) -> bool:
    """Whether a message is only courtesies ("thanks!", "好的")."""
    if len(message) > _LONGEST_SMALL_TALK:
        return False
    language = language_of([message])
    if language == "zh":
        return all(_is_all_pleasantries(run) for run in _runs(message))
    return all(word in PLEASANTRIES["en"] for word in english_words(message))


def has_cue(message: str, cues: frozenset[str], language: Language) -> bool:
    """Whether one of the cues is in a message: in Chinese anywhere, in English as a word."""
    if language == "zh":
        return any(cue in message for cue in cues)
    return not cues.isdisjoint(english_words(message))


@text_cache(64)
def english_words(message: str) -> tuple[str, ...]:
    """The words of an English message in lower case, contractions whole."""
    # A turn asks several things of its message, one after the other.
    return tuple([part.strip("'") for part in _ENGLISH.findall(message.lower().replace("’", "'"))])


def _runs(message: str) -> list[str]:
    return [run.lower() for run in _RUN.findall(message)]


def _is_all_pleasantries(run: str) -> bool:
    """Whether a text can be split into courtesies, longest first."""
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
