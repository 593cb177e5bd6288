"""How a message sounds, by the words in it. Pure, and without a model.

Clause by clause: a word of feeling counts by its weight, more behind “very”, less behind “a bit”, not at all
behind a negation, little when it is said of somebody else. What is quoted, or only to be written or translated, is
not how the user feels.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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
_ASKS_FOR = re.compile(
    _PLEASE + r"(?:what (?:was|were)\b|who (?!designed|thought|came|wrote (?:this|that|it))|"
    r"where (?:can|could|is|are|was|were|did(?! (?:you|that|this|the|it))) |"
    r"when (?:is|was|were|did|do|does|will|should) |"
    r"which (?!one is|is it|is which|way|am i|of )(?!.*\b(?:supposed|meant)\b)|"
    r"how (?:to|many|much|long|far|old|often) (?!times|more|longer)|"
    r"(?:explain|describe) (?!this|that|it\b|again|to me)|tell me (?:about|a|some|the)\b|"
    r"(?:name|suggest|compare|convert|find|check|correct|remind|add|set|make|create|generate|show me|play|plan|"
    r"book|rename) (?!sense|up|it stop)|"
    r"帮我|给我讲|给我介绍|介绍|讲讲|有没有.*的|哪[家款种个]|我?想[买找租订]|"
    r"怎么(?:煮|做|用|洗|画|选|安慰|哄|缓解|治|预防|应对|克服|面对))"
)
"""A clause that asks for a thing is about the thing."""
_ABOUT_WORDS = re.compile(
    r"synonym|antonym|another word|opposite of (?!what|how)|(?<!your )\bword for|\bpronounce|\bspell|\bgrammar\b|"
    r"\b(?:say|translate|means?|called)\b.* in "
    r"(?:english|spanish|french|german|italian|portuguese|japanese|chinese)|"
    r"[反近同]义词|几画|怎么[读写念拼](?!都|也)|[用成译][英日韩法德俄][语文]|英文|日文|造句|歌词|这个[词字]|成语|哪年|"
    r"作者|导演|主演|热量|停播|改得|改成|语气|口吻"
)
"""What is said of words and works is not felt."""
_ASKS = re.compile(
    r"[?？]|\b(?:please|can you|could you)\b|(?:呢|吗|么)\s*$|帮我|请|麻烦你|能不能|怎么|^再|照样|"
    r"[,.!，。！]\s*(?:(?:now|next|and|then|also|do|make|change|add|try|give|show)\b|[再把也那换]|下一|接着|继续|给我)"
)
"""Beside it a bare "thanks" is a courtesy."""
_DRAWN_OUT = re.compile(r"([a-z])\1{2,}")
_CONTRAST = re.compile(r"\b(?:but|however|yet)\b|但是|但|不过|可是|然而")
_LOUDLY = re.compile("[!！]{2}")
_UNIT = re.compile(rf"[a-z]+(?:'[a-z]+)*|[0-9]+|[{_HAN}]|[^\s\w\-']")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})

_CONTRACTIONS = {
    f"{verb}nt": f"{verb}n't"
    for verb in (
        *("do", "does", "did", "is", "are", "was", "were", "wo", "ca"),
        *("have", "has", "had", "could", "would", "should"),
    )
} | {
    "cannot": "can't",
    "im": "i'm",
    "ive": "i've",
    "youre": "you're",
    "youve": "you've",
    "thats": "that's",
    "whats": "what's",
    "theyre": "they're",
}
_SQUEEZED = re.compile(rf"\b(?:{'|'.join(_CONTRACTIONS)})\b")
_LONGEST_WORD = 2
"""Chinese characters of one word."""
_REACH = 5
"""Units (English words, Chinese characters) over which a negation reaches."""
_BOOST_REACH = 3
_LOOK_BACK = 12
"""Entries before a word that are looked at."""
_BOOST, _DAMP = 1.35, 0.65
_OF_OTHERS = 0.2
_FAINT = 0.2
"""What is no more than a hint, and all hints of an emotion together: they add to it and make none."""
_BEFORE_CONTRAST = 0.6
_SHOUTED = 1.3
_AGAIN = 0.4
"""Of a word that is said again."""
_PUZZLED = 0.5
"""Of several question marks."""
_OF_PAIRS = 0.9
_CHEERS = 0.5
"""Of several exclamation marks where nothing else is felt."""
_NEWS = 0.3
"""Of one exclamation mark behind what somebody tells of themselves, where nothing else is felt."""
_SHORTEST_NEWS = 2
_TELLERS = frozenset({"i", "i'm", "i've", "we", "we're", "we've", "my", "our", "我", "咱"})
_DEMANDS = frozenset(
    {"not", "no", "don't", "can't", "never", "need", "want", "must", "should", "said", "asked", "help", "stop"}
    | {"is", "am", "i'd", "if", "let", "call", "give", "tell", "send", "show"}
    | set("不没别要想说问叫请让快给是")
)
_STEEPNESS = 1.1
_DIGITS = 3


class _Item(NamedTuple):
    place: int
    end: int
    entry: Entry
    text: str


class _Feeling(NamedTuple):
    emotion: Emotion
    weight: float
    text: str
    """By which words."""
    is_denied: bool
    is_hint: bool
    is_courtesy: bool


def scores_of(text: str) -> EmotionScores:
    """How much there is of each emotion in a message, 0 to 1.

    It takes time in proportion to the text up to 1000 characters, and no more for a longer one.
    """
    raw = dict.fromkeys(EMOTIONS, 0.0)
    hints = dict.fromkeys(EMOTIONS, 0.0)
    seen: set[tuple[str, Emotion]] = set()
    folded = _folded(text)
    share = 0.0 if _TO_WRITE.search(folded) else 1.0
    asks = _ASKS.search(folded) is not None
    folded = _ASKS_ABOUT.sub(" ", folded)
    clauses = [(found[1], found[2]) for found in _CLAUSE.finditer(folded) if found[0]]
    turns = [place for place, (clause, _) in enumerate(clauses) if _CONTRAST.match(clause.strip())]
    last_turn = turns[-1] if turns else 0
    for place, (clause, mark) in enumerate(clauses):
        weight = share * (_BEFORE_CONTRAST if place < last_turn else 1.0)
        for felt in _felt(clause, mark):
            loud = _SHOUTED if "!" in mark and felt.emotion in _LOUD else 1.0
            again = _AGAIN if (felt.text, felt.emotion) in seen else 1.0
            seen.add((felt.text, felt.emotion))
            is_hint = felt.is_hint or (felt.is_courtesy and asks)
            (hints if is_hint else raw)[felt.emotion] += felt.weight * weight * loud * again
        if mark.count("?") > 1:
            raw["confusion"] += _PUZZLED * share
    for emotion, found in _signs(text):
        raw[emotion] += found
    if not any(raw.values()):
        if _LOUDLY.search(folded):
            raw["excitement"] = _CHEERS * share
        elif not asks and any(_is_news(clause) for clause, mark in clauses if "!" in mark):
            raw["excitement"] = _NEWS * share
    return {
        emotion: round(1 - math.exp(-_STEEPNESS * (felt + min(hints[emotion], _FAINT))), _DIGITS) if felt else 0.0
        for emotion, felt in raw.items()
    }


def denied_in(text: str) -> frozenset[Emotion]:
    """The emotions that a message says are not there, and nothing in it says that they are."""
    felt: set[Emotion] = set()
    denied: set[Emotion] = set()
    for found in _CLAUSE.finditer(_ASKS_ABOUT.sub(" ", _folded(text))):
        for each in _feelings(found[1], found[2]) if found[0] else ():
            (denied if each.is_denied else felt).add(each.emotion)
    return frozenset(denied - felt)


_LOUD: frozenset[Emotion] = frozenset({"excitement", "frustration"})
_SELVES = frozenset({"me", "my", "us", "i", "i'm", "我"})
"""An expression with one of these is of the user, whoever is its subject ("my boss is driving me mad")."""
_DONE_BY_OTHERS: frozenset[Emotion] = frozenset({"frustration"})
"""What others do is a reason for it ("they never answer")."""
_ASKED: frozenset[Emotion] = frozenset({"anxiety", "excitement", "trust"})
"""A plain word of these in a question that does not speak of the user is its subject ("Are cats happy alone?")."""


def folded_units(text: str) -> list[str]:
    """The words and Chinese characters of a message, folded as the lexicons are, quotations left out."""
    return _UNIT.findall(_folded(text))


def _folded(text: str) -> str:
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}\n{text[-_SHOWN:]}"
    plain = unicodedata.normalize("NFKC", shown).translate(_APOSTROPHES).lower()
    plain = _SQUEEZED.sub(lambda found: _CONTRACTIONS[found[0]], _DRAWN_OUT.sub(r"\1", plain))
    return simplified(_HIDDEN.sub(" ", plain))


def _felt(clause: str, mark: str) -> Iterator[_Feeling]:
    felt = [each for each in _feelings(clause, mark) if not each.is_denied]
    if felt and not _ASKS_FOR.match(clause) and not _ABOUT_WORDS.search(clause):
        yield from felt


def _feelings(clause: str, mark: str) -> Iterator[_Feeling]:
    """What a clause names."""
    units = ["^", *_UNIT.findall(clause), "$", *mark[:1]]
    items = sorted(
        (
            _Item(begin, end, lexicon.entries[text], text)
            for lexicon in (chinese(), english())
            for begin, end, text in lexicon.phrases.found_in(units)
        ),
        key=lambda item: item.place,
    )
    for lexicon in (chinese(), english()):
        for place, pair, expression in lexicon.pairs.found_in(units):
            before = [item for item in items if item.place < place][-_LOOK_BACK:]
            _, denied, of_others = _surroundings(before, place)
            is_hint = of_others and pair.emotion not in _DONE_BY_OTHERS and not _names_self(expression)
            yield _Feeling(pair.emotion, _OF_PAIRS, " ".join(expression), denied, is_hint, False)
    asked = ("?" in mark or clause.endswith("吗")) and not any("self" in item.entry.roles for item in items)
    for number, item in enumerate(items):
        if not item.entry.feelings:
            continue
        factor, denied, of_others = _surroundings(items[max(0, number - _LOOK_BACK) : number], item.place)
        of_others = of_others and not _names_self(_UNIT.findall(item.text))
        courtesy = "courtesy" in item.entry.roles
        for emotion, weight in item.entry.feelings.items():
            is_hint = (
                of_others
                or weight < _FAINT
                or (asked and factor <= 1 and emotion in _ASKED and _is_one_word(item.text))
            )
            yield _Feeling(
                emotion, weight * (_OF_OTHERS if of_others else factor), item.text, denied, is_hint, courtesy
            )


def _is_news(clause: str) -> bool:
    """Whether somebody who calls it out tells something of themselves, and neither denies nor demands it."""
    units = _UNIT.findall(clause)
    return len(units) > _SHORTEST_NEWS and not _TELLERS.isdisjoint(units) and _DEMANDS.isdisjoint(units)


def _names_self(units: Iterable[str]) -> bool:
    return not _SELVES.isdisjoint(units)


def _is_one_word(text: str) -> bool:
    return " " not in text if text.isascii() else len(text) <= _LONGEST_WORD


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
