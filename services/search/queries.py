"""What to seek for a message: at most three queries, made by rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from services.text.cue_words import ASKS, ASKS_COUNSEL, PLEASANTRIES, QUOTES, REFERS_BACK, SEEKS_ADVICE
from services.text.language import Language, language_of
from services.text.tokenizer import indexed_text, informative_terms, is_weak, simplified

QueryKind = Literal["message", "context", "preference"]

_RECENT_MESSAGES = 6
_PREFERENCE_WEIGHT = 0.3
# Who goes on talking, or wants counsel, is on the subject of the talk, of which one message says little; any
# other question is asked for its own sake, and only what it leaves open is to be looked for in the talk.
_WEIGHTS_TALKING = (0.2, 1.0)
_WEIGHTS_OPEN = (0.5, 1.0)
_WEIGHTS_HINT = (1.0, 0.4)
_OPEN = 1
_SHORT = 3

_PREFERENCE: dict[Language, str] = {
    "en": "I like, love, prefer, my favourite: {}",
    "zh": "我喜欢，我最爱，我常：{}",
}

_LONGEST_PLEASANTRY = 4

# Whoever asks how to cook rice speaks of himself in a manner of speaking only.
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
"""A question word, also where it is shortened or written as it is heard, behind what opens a message."""
_ONESELF = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|im|me|my|mine|we|we're|we've|us|our|ours)\b")


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message of the conversation at hand; the speaker as in what is indexed, or empty."""

    role: Literal["user", "assistant"]
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A text to search for, lexically and densely. Weights are relative to one another."""

    text: str
    weight: float
    kind: QueryKind


def make_queries(
    message: str, recent: Sequence[Utterance] = (), language: Language | None = None, *, speaker: str = ""
) -> list[RecallQuery]:
    """The queries for a message, the message itself the first; none for a message without a letter.

    A message that goes on talking instead of asking, asks for counsel, quotes, or does not name its
    subject, is sought together with what the user said last (`recent`, the newest last, without the
    message itself) and the answer it follows; so is, with less weight, one that names little and refers
    back.
    One that seeks advice or a choice is sought as a statement of what the user likes, too.
    """
    said = message.strip()
    if not any(character.isalnum() for character in said):
        return []
    of = language or language_of([said])
    queries = []
    own, context = _weights(said, of) if recent else (1.0, 0.0)
    queries.append(RecallQuery(said, own, "message"))
    if context:
        queries.append(RecallQuery(_with_context(said, speaker, recent), context, "context"))
    if _has(said, SEEKS_ADVICE[of], of):
        subject = _subject(said, of)
        if subject:
            queries.append(RecallQuery(_PREFERENCE[of].format(subject), _PREFERENCE_WEIGHT, "preference"))
    return queries


def refers_back(message: str, language: Language) -> bool:
    """Whether the message may speak of something that was named before it."""
    return _has(message, REFERS_BACK[language], language)


def is_about_oneself(message: str, language: Language) -> bool:
    """Whether a message speaks of the user's own affairs ("my", "did I", 我的), beyond wanting something done."""
    folded = message.lower()
    if language == "zh":
        return "我" in _REQUESTS_OF_ONE.sub("", folded)
    return not _OWN.isdisjoint(_english_words(folded)) or bool(_OF_ONE.search(folded))


def asks_of_oneself(message: str, language: Language) -> bool:
    """Whether a message asks for something of the user's own life, where memory is the only place to look."""
    if asks_in_general(message):
        return False
    if is_about_oneself(message, language):
        return True
    return language == "en" and bool(_ONESELF.search(message.lower().replace("’", "'")))


def is_about_the_assistant(message: str, language: Language) -> bool:
    """Whether a message is about what the assistant said or did ("what did you recommend", 你推荐的)."""
    return bool(_OF_THE_ASSISTANT[language].search(simplified(message.lower())))


def asks_in_general(message: str) -> bool:
    """Whether a message asks how something is done or what it is, for anybody (how do I boil rice, 什么是复利)."""
    return bool(_IN_GENERAL[language_of([message])].search(simplified(message.strip().lower())))


def is_small_talk(message: str) -> bool:
    """Whether a message is made of courtesies alone ("thanks!", "好的"): there is nothing to remember for it."""
    language = language_of([message])
    if language == "zh":
        return all(_is_all_pleasantries(run) for run in _runs(message))
    return all(word in PLEASANTRIES["en"] for word in _english_words(message))


def _with_context(message: str, speaker: str, recent: Sequence[Utterance]) -> str:
    last = list(recent)[-2 * _RECENT_MESSAGES :]
    answers = [place for place, said in enumerate(last) if said.role == "assistant"]
    asked = [place for place, said in enumerate(last) if said.role == "user"]
    kept = sorted([*asked[-_RECENT_MESSAGES + 1 :], *answers[-1:]])
    return "\n".join(
        [*(indexed_text(last[place].speaker, last[place].text) for place in kept), indexed_text(speaker, message)]
    )


def _weights(message: str, language: Language) -> tuple[float, float]:
    """How much the message counts by itself, and how much with what was said before it."""
    if _contains(message, ASKS_COUNSEL[language]) or not asks(message, language):
        return _WEIGHTS_TALKING
    subjects = len(informative_terms(message))
    if subjects <= _OPEN or _contains(message, QUOTES[language]):
        return _WEIGHTS_OPEN
    return _WEIGHTS_HINT if subjects <= _SHORT and refers_back(message, language) else (1.0, 0.0)


def asks(message: str, language: Language) -> bool:
    """Whether the message asks something, by its mark or its words."""
    if language == "zh":
        folded = simplified(message)
        return folded.rstrip().endswith(("?", "？")) or _has(folded, ASKS[language], language)
    opening = _ASKS_AFTER.match(message.lower().replace("’", "'"))
    first = _english_words(message)[:1]
    return "?" in message or opening is not None or (bool(first) and first[0] in ASKS[language])


def _contains(message: str, cues: frozenset[str]) -> bool:
    folded = message.lower()
    return any(cue in folded for cue in cues)


def _has(message: str, cues: frozenset[str], language: Language) -> bool:
    if language == "zh":
        return any(cue in message for cue in cues)
    return not cues.isdisjoint(_english_words(message))


def _subject(message: str, language: Language) -> str:
    """The message without the words that make it a request."""
    cues = SEEKS_ADVICE[language] | ASKS[language]
    if language == "en":
        return " ".join(word for word in _english_words(message) if word not in cues and not is_weak(word))
    for cue in sorted(cues, key=len, reverse=True):
        message = message.replace(cue, " ")
    return " ".join(message.split())


def _english_words(message: str) -> list[str]:
    folded = message.lower().replace("’", "'")
    return [part.strip("'") for part in "".join(c if c.isalnum() or c == "'" else " " for c in folded).split()]


def _runs(message: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in message).lower().split()


def _is_all_pleasantries(run: str) -> bool:
    """Whether a run can be cut into courtesies, the longest first."""
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
