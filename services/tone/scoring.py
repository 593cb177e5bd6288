"""How a message sounds, by the words in it. Pure, and without a model.

Clause by clause: a word of feeling counts by its weight, more behind “very”, less behind “a bit”, not at all
behind a negation, little when it is said of somebody else. What is quoted, or only to be written or translated, is
not how the user feels.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.memory.terms import simplified
from services.tone.lexicon import EMOTIONS, Entry, chinese, english, signs
from state.prompt import Emotion, EmotionScores

_SHOWN = 500
"""Of a longer message its first and its last so many characters are looked at: there people say how they feel."""
_HAN = "\u3400-\u9fff\uf900-\ufaff"
_HIDDEN = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|“[^”]{4,}”|\"[^\"\n]{4,}\"|「[^」]{2,}」|《[^》]*》|(?<!\w)'[^'\n]{8,}'(?!\w)"
    r"|https?://\S+",
    re.DOTALL,
)
_CLAUSE = re.compile(r"([^,.!?;…。！？；，、\n—~]*)([,.!?;…。！？；，、\n—~]*)")
_PLEASE = r"^\W*(?:(?:please|can you|could you|请|请你|帮我|麻烦你?|给我)\s*)*"
_TO_WRITE = re.compile(
    _PLEASE
    + r"(?:translate|write|draft|compose|rewrite|rephrase|paraphrase|proofread|summari[sz]e|give me|list\b|"
    r"把.{0,20}(?:翻译|改写|润色|换成)|翻译|写一?[个篇首段封份]?|改写|润色|造句|总结|列出)"
)
_ASKS_ABOUT = re.compile(
    _PLEASE + r"(?:what (?:is|are|does)\b(?! (?:going|happening|wrong|that|this|it))|define\b|recommend|"
    r"how (?:do|can|should|does) (?!i not)(?!this|that|it)|推荐|什么是|怎样|如何)[^.?!。？！\n]*"
)
_CONTRAST = re.compile(r"\b(?:but|however|yet)\b|但是|但|不过|可是|然而")
_LOUDLY = re.compile("[!！]{2}")
_UNIT = re.compile(rf"[a-z]+(?:'[a-z]+)*|[0-9]+|[{_HAN}]|[^\s\w]")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})

_REACH = 5
"""Units (English words, Chinese characters) over which a negation reaches."""
_BOOST_REACH = 3
_LOOK_BACK = 12
"""Entries before a word that are looked at."""
_BOOST, _DAMP = 1.35, 0.65
_OF_OTHERS = 0.2
_BEFORE_CONTRAST = 0.6
_SHOUTED = 1.3
_AGAIN = 0.4
"""Of a word that is said again."""
_PUZZLED = 0.5
"""Of several question marks."""
_OF_PAIRS = 0.9
_CHEERS = 0.5
"""Of several exclamation marks where nothing else is felt."""
_STEEPNESS = 1.1
_DIGITS = 3


@dataclass(frozen=True)
class _Item:
    place: int
    end: int
    entry: Entry
    text: str


def scores_of(text: str) -> EmotionScores:
    """How much there is of each emotion in a message, 0 to 1.

    It takes time in proportion to the text up to 1000 characters, and no more for a longer one.
    """
    raw = dict.fromkeys(EMOTIONS, 0.0)
    seen: set[tuple[str, Emotion]] = set()
    folded = _folded(text)
    share = 0.0 if _TO_WRITE.search(folded) else 1.0
    folded = _ASKS_ABOUT.sub(" ", folded)
    clauses = [(found[1], found[2]) for found in _CLAUSE.finditer(folded) if found[0]]
    turns = [place for place, (clause, _) in enumerate(clauses) if _CONTRAST.match(clause.strip())]
    last_turn = turns[-1] if turns else 0
    for place, (clause, mark) in enumerate(clauses):
        weight = share * (_BEFORE_CONTRAST if place < last_turn else 1.0)
        for emotion, found, word in _felt(clause):
            loud = _SHOUTED if mark.count("!") + mark.count("！") > 0 and emotion in _LOUD else 1.0
            again = _AGAIN if (word, emotion) in seen else 1.0
            seen.add((word, emotion))
            raw[emotion] += found * weight * loud * again
        if mark.count("?") + mark.count("？") > 1:
            raw["confusion"] += _PUZZLED * share
    for emotion, found in _signs(text):
        raw[emotion] += found
    if not any(raw.values()) and _LOUDLY.search(folded):
        raw["excitement"] = _CHEERS * share
    return {emotion: round(1 - math.exp(-_STEEPNESS * value), _DIGITS) for emotion, value in raw.items()}


def denied_in(text: str) -> frozenset[Emotion]:
    """The emotions that a message says are not there, and nothing in it says that they are."""
    felt: set[Emotion] = set()
    denied: set[Emotion] = set()
    for found in _CLAUSE.finditer(_ASKS_ABOUT.sub(" ", _folded(text))):
        for emotion, _, _, is_denied in _feelings(found[1]) if found[0] else ():
            (denied if is_denied else felt).add(emotion)
    return frozenset(denied - felt)


_LOUD: frozenset[Emotion] = frozenset({"excitement", "frustration"})


def folded_units(text: str) -> list[str]:
    """The words and Chinese characters of a message, folded as the lexicons are, quotations left out."""
    return _UNIT.findall(_folded(text))


def _folded(text: str) -> str:
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}\n{text[-_SHOWN:]}"
    plain = unicodedata.normalize("NFKC", shown).translate(_APOSTROPHES).lower()
    return simplified(_HIDDEN.sub(" ", plain))


def _felt(clause: str) -> Iterator[tuple[Emotion, float, str]]:
    for emotion, weight, text, denied in _feelings(clause):
        if not denied:
            yield emotion, weight, text


def _feelings(clause: str) -> Iterator[tuple[Emotion, float, str, bool]]:
    """What a clause names: the emotion, how much of it, by which words, and whether it is denied."""
    units = _UNIT.findall(clause)
    items = sorted(
        (
            _Item(begin, end, lexicon.entries[text], text)
            for lexicon in (chinese(), english())
            for begin, end, text in lexicon.phrases.found_in(units)
        ),
        key=lambda item: item.place,
    )
    for lexicon in (chinese(), english()):
        for place, unit in enumerate(units):
            for pair in lexicon.pairs.get(unit, ()):
                if pair.stands_at(place, units):
                    yield pair.emotion, _OF_PAIRS, "".join((*pair.head, *pair.tail)), False
    for number, item in enumerate(items):
        if not item.entry.feelings:
            continue
        factor, denied, of_others = _surroundings(items[max(0, number - _LOOK_BACK) : number], item.place)
        for emotion, weight in item.entry.feelings.items():
            yield emotion, weight * (_OF_OTHERS if of_others else factor), item.text, denied


def _surroundings(before: Sequence[_Item], place: int) -> tuple[float, bool, bool]:
    """How much stronger a word is made by those before it, whether it is denied, and whether it is of others."""
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
    return factor, denied, subject == "other"


def _signs(text: str) -> Iterator[tuple[Emotion, float]]:
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]} {text[-_SHOWN:]}"
    if shown.isascii() and ":" not in shown and "^" not in shown:
        return
    for sign, found in signs().items():
        if sign in shown:
            yield found
