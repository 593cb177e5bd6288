"""How a message sounds, by the words in it. Pure, and without a model.

A word of feeling counts by its weight: more after "very", less after "a bit", not at all after a negation, little
when it is said of somebody else. Quotations, and everything from the first request for work on ("Write …",
"What is …"), are what the user talks about and not how they feel.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from services.text.sentences import sentences
from services.text.tokenizer import simplified
from services.text.work_requests import asks_about_something, asks_for_work
from services.tone.lexicon import EMOTIONS, Entry, chinese, english, signs
from state.prompt import Emotion, EmotionScores

_SHOWN = 500
"""Characters that are looked at from the beginning, and from the end, of a longer message."""
_HAN = "\u3400-\u9fff\uf900-\ufaff"
_HIDDEN = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|“[^“”]{4,}”|\"[^\"\n]{4,}\"|「[^「」]{2,}」|《[^《》]*》|(?<!\w)'[^'\n]{8,}'(?!\w)"
    r"|https?://\S+",
    re.DOTALL,
)
_CLAUSE = re.compile(r"([^,.!?;…。！？；，、\n—~]*)([,.!?;…。！？；，、\n—~]*)")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|myself|we|we're|us|our)\b|[我咱俺]")
_ASKS = re.compile(r"[?？]|\b(?:please|can you|could you)\b|(?:呢|吗|么)\s*$|帮我|请|麻烦你|能不能|怎么")
"""Next to it a bare "thanks" is a courtesy."""
_ASKS_FOR_A_FACT = re.compile(
    r"^\W*(?:(?:and|so|but|hey|ok|tell me|remind me|do you know)\W+)?(?:what|which|who|whose|where|when)\b"
    r"(?!.*\b(?:what|why|how)\b)"
    r"|(?<![为凭干没搞算])(?:什么|啥)(?![都也的破鬼]|玩意|时候都)|哪(?![怕都也]|里都)|谁(?![都也])"
)
"""A question for a thing or a person: a feeling in it is the user's at other times ("What do I hate?")."""
_DRAWN_OUT = re.compile(r"([a-z])\1{2,}")
_CONTRAST = re.compile(r"\b(?:but|however|yet)\b|但是|但|不过|可是|然而")
_UNIT = re.compile(rf"[a-z]+(?:'[a-z]+)*|[0-9]+|[{_HAN}]|[^\s\w\-']")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_CONTRACTIONS = {
    f"{verb}nt": f"{verb}n't"
    for verb in (
        *("do", "does", "did", "is", "are", "was", "were", "wo", "ca"),
        *("have", "has", "had", "could", "would", "should"),
    )
} | {"cannot": "can't", "im": "i'm", "ive": "i've", "youre": "you're", "youve": "you've"}
_SQUEEZED = re.compile(rf"\b(?:{'|'.join(_CONTRACTIONS)})\b")
_REACH = 5
"""Units (English words, Chinese characters) over which a negation reaches."""
_BOOST_REACH = 3
_LOOK_BACK = 12
"""Entries before a word that are looked at."""
_BESIDE = 10
"""Units of a clause, beside the words of feeling, up to which nobody has to be named: "this is so annoying"."""
_LONG = 60
"""Units from which a message is mostly material: in it users name themselves when they speak of feelings."""
_ASKING = ("吗", "么")
"""Ends of a question without a mark. Where it names no first person, a plain word of feeling is its subject."""
_LONGEST_WORD = 2
"""Chinese characters of a plain word."""
_BOOST, _DAMP = 1.35, 0.65
_OF_OTHERS = 0.2
_HINTS = 0.2
"""The most that all feelings of others and courtesies add; alone they make no feeling."""
_BEFORE_CONTRAST = 0.6
_SHOUTED = 1.3
_AGAIN = 0.4
"""Factor of a word that is repeated."""
_STEEPNESS = 1.1
_DIGITS = 3
_LOUD: frozenset[Emotion] = frozenset({"excitement", "frustration"})


class _Item(NamedTuple):
    place: int
    end: int
    entry: Entry
    text: str


class _Feeling(NamedTuple):
    emotion: Emotion
    weight: float
    text: str
    is_denied: bool
    is_hint: bool
    is_courtesy: bool


def scores_of(text: str) -> EmotionScores:
    """Score how much there is of each emotion in a message, 0 to 1.

    The time it takes grows with the text up to 1000 characters, and no further.
    """
    raw = dict.fromkeys(EMOTIONS, 0.0)
    hints = dict.fromkeys(EMOTIONS, 0.0)
    seen: set[tuple[str, Emotion]] = set()
    own = _own_words(_folded(text))
    asks = _ASKS.search(own) is not None
    clauses = [(found[1], found[2]) for found in _CLAUSE.finditer(own) if found[0]]
    turns = [place for place, (clause, _) in enumerate(clauses) if _CONTRAST.match(clause.strip())]
    last_turn = turns[-1] if turns else 0
    is_long = len(_UNIT.findall(own)) > _LONG
    for place, (clause, mark) in enumerate(clauses):
        weight = _BEFORE_CONTRAST if place < last_turn else 1.0
        for felt in _felt(clause, mark, is_long=is_long):
            loud = _SHOUTED if "!" in mark and felt.emotion in _LOUD else 1.0
            again = _AGAIN if (felt.text, felt.emotion) in seen else 1.0
            seen.add((felt.text, felt.emotion))
            is_hint = felt.is_hint or (felt.is_courtesy and asks)
            (hints if is_hint else raw)[felt.emotion] += felt.weight * weight * loud * again
    for emotion, found in _signs(text):
        raw[emotion] += found
    return {
        emotion: round(1 - math.exp(-_STEEPNESS * (felt + min(hints[emotion], _HINTS))), _DIGITS) if felt else 0.0
        for emotion, felt in raw.items()
    }


def denied_in(text: str) -> frozenset[Emotion]:
    """Return the emotions that a message says are absent, unless something else in it says that they are there."""
    felt: set[Emotion] = set()
    denied: set[Emotion] = set()
    for found in _CLAUSE.finditer(_own_words(_folded(text))):
        for each in _feelings(found[1], found[2]) if found[0] else ():
            (denied if each.is_denied else felt).add(each.emotion)
    return frozenset(denied - felt)


def folded_units(text: str) -> list[str]:
    """Split a message into words and Chinese characters, folded as the lexicons are, without quotations."""
    return _UNIT.findall(_folded(text))


def _folded(text: str) -> str:
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}\n{text[-_SHOWN:]}"
    plain = unicodedata.normalize("NFKC", shown).translate(_APOSTROPHES).lower()
    plain = _SQUEEZED.sub(lambda found: _CONTRACTIONS[found[0]], _DRAWN_OUT.sub(r"\1", plain))
    return simplified(_HIDDEN.sub(" ", plain))


def _own_words(folded: str) -> str:
    """The message up to its first request for work; the rest of it is the task and its material."""
    for sentence in sentences(folded):
        text = sentence.text
        if asks_for_work(text) or (asks_about_something(text) and not _is_about_oneself(text)):
            return folded[: sentence.start]
    return folded


def _is_about_oneself(sentence: str) -> bool:
    """Whether a question is about how the user feels: "why am I so tired of this", 为什么我总是这么焦虑."""
    for found in _CLAUSE.finditer(sentence):
        units = _UNIT.findall(found[1])
        items = _items(["^", *units, "$"])
        for number, item in enumerate(items):
            before = items[max(0, number - _LOOK_BACK) : number]
            if item.entry.feelings and _surroundings(before, item.place)[2] == "self":
                return True
    return False


def _felt(clause: str, mark: str, *, is_long: bool) -> Iterator[_Feeling]:
    """Yield what a clause says of the user's own feelings."""
    feelings = [each for each in _feelings(clause, mark) if not each.is_denied]
    if "!" not in mark and _ASKS_FOR_A_FACT.search(clause):
        feelings = [each for each in feelings if _ASKS_FOR_A_FACT.search(each.text)]
    if not feelings or _FIRST_PERSON.search(clause):
        yield from feelings
        return
    if "?" in mark or clause.rstrip().endswith(_ASKING):
        feelings = [each for each in feelings if not _is_one_word(each.text)]
    beside = len(_UNIT.findall(clause)) - sum(len(_UNIT.findall(each.text)) for each in feelings)
    if feelings and not is_long and beside <= _BESIDE:
        yield from feelings


def _is_one_word(text: str) -> bool:
    return " " not in text if text.isascii() else len(text) <= _LONGEST_WORD


def _feelings(clause: str, mark: str) -> Iterator[_Feeling]:
    """Yield the feelings that a clause names, no matter whose."""
    items = _items(["^", *_UNIT.findall(clause), "$", *mark[:1]])
    for number, item in enumerate(items):
        if not item.entry.feelings:
            continue
        factor, denied, subject = _surroundings(items[max(0, number - _LOOK_BACK) : number], item.place)
        of_others = subject == "other" and not _FIRST_PERSON.search(item.text)
        for emotion, weight in item.entry.feelings.items():
            strength = weight * (_OF_OTHERS if of_others else factor)
            yield _Feeling(emotion, strength, item.text, denied, of_others, "courtesy" in item.entry.roles)


def _items(units: Sequence[str]) -> list[_Item]:
    found: Iterable[_Item] = (
        _Item(begin, end, lexicon.entries[text], text)
        for lexicon in (chinese(), english())
        for begin, end, text in lexicon.phrases.found_in(units)
    )
    return sorted(found, key=lambda item: item.place)


def _surroundings(before: Sequence[_Item], place: int) -> tuple[float, bool, str | None]:
    """Return how much stronger the entries before a word make it, whether it is denied, and who is its subject."""
    factor, denied, subject = 1.0, False, None
    stopped = False
    for item in reversed(before):
        distance = place - item.end
        roles = item.entry.roles
        if subject is None and roles & {"self", "other"}:
            subject = "self" if "self" in roles else "other"
        if "stop" in roles:
            stopped = True
        if stopped:
            continue
        if "booster" in roles and distance <= _BOOST_REACH:
            factor = max(factor, _BOOST)
        elif "damper" in roles and distance <= _BOOST_REACH:
            factor = min(factor, _DAMP)
        if "negator" in roles and "booster" not in roles and distance < _REACH:
            denied = not denied
    return factor, denied, subject


def _signs(text: str) -> Iterator[tuple[Emotion, float]]:
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]} {text[-_SHOWN:]}"
    if shown.isascii() and ":" not in shown and "^" not in shown:
        return
    for sign, found in signs().items():
        if sign in shown:
            yield found
