"""Overlap of a message and a text by the words they share, in any inflection. Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.knowledge.word_forms import Vocabulary, folded_forms
from services.text.concepts import facets
from services.text.tokenizer import informative_terms, lone_characters, terms

_ASKING = frozenset(
    """
    几天 几点 几个 几次 几年 几月 几号 多久 多大 多长 多高 多远 多少钱 长时间 时间 什么时候 开始 结束
    需要 应该 要求 怎么办 咨询 处理 注意 问问 问下 想问 麻烦 请问 你好 周末 早上 晚上 上午 下午 明天 昨天 每天
    收费 费用 规定 流程 规则 手续 允许 方式 咨询一下 查一下
    allow permit cost price charg fee long exact avail night even morn afternoon weekend tomorrow
    yesterday quick question hello bother help possibl inform
    """.split()  # noqa: SIM905 — words are easier to read so
)
"""Words of questions, time and phrasing, which are not the subject of a question; English ones as stems."""
_FUNCTION = re.compile(
    "[的了是在我你他她它吗呢吧啊把被给和与也都就还不没有要会能可以这那哪里个一上下来去到用于对很太好请想问么什怎样多少几]"
)
_PAIR = 2
_BY_CONCEPT = 0.6
"""Weight of a word that the text paraphrases."""
_BY_CHARACTERS = 0.3
"""Weight of a Chinese word whose characters the text has, but not as this word."""
_LONE = 0.4
"""Weight of a Chinese word of one character; two count as one shared word."""
_TWO = 2
_UNSAID = 0.5
"""Weight, in words, added to every message, so that one shared word covers less than two."""
_FEWEST = 100
"""Smallest number of texts assumed when words are weighed by rarity."""


@dataclass(frozen=True)
class Wanted:
    """What a message is about."""

    terms: frozenset[str]
    """Informative words: base forms of English stems, and Chinese words."""
    pairs: frozenset[str]
    """Pairs of Chinese characters that may be words missing from the dictionary."""
    characters: frozenset[str]
    """Chinese words of one character, each of which says little."""
    concepts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Concepts of terms for everyday things (`services.text.concepts`)."""

    @property
    def all(self) -> frozenset[str]:
        """All terms that a text may share."""
        return self.terms | self.pairs


def wanted(message: str) -> Wanted:
    """The subject of a message, without question words."""
    informative = informative_terms(message)
    pairs = (term for term in terms(message) if len(term) == _PAIR and not term.isascii())
    about = folded_forms(informative - _ASKING)
    return Wanted(
        about,
        frozenset(pair for pair in pairs if pair not in informative | _ASKING and not _FUNCTION.search(pair)),
        frozenset(each for each in lone_characters(message) if not _FUNCTION.search(each)),
        _concepts_of(message, about),
    )


def _concepts_of(message: str, about: frozenset[str]) -> dict[str, frozenset[str]]:
    """Concepts of the terms; terms that only say what is asked about a subject have none."""
    found = {}
    for facet in facets(message):
        named = frozenset(concept for concept, weight in facet.concepts.items() if weight == 1.0)
        for term in folded_forms(facet.terms) & about if named and facet.weight == 1.0 else ():
            found[term] = named
    return found


@dataclass(frozen=True)
class Overlap:
    """Overlap of a text with a subject."""

    coverage: float = 0.0
    """Share of the subject, by weight; 0 to 1."""
    shared: int = 0
    """Number of shared words."""


def overlaps(want: Wanted, texts: Sequence[Vocabulary]) -> list[Overlap]:
    """Overlap of each text with the subject.

    A word counts the more, the fewer of these texts have it (the idf of Robertson and Spärck Jones).
    """
    held = [frozenset(term for term in want.terms if term in text) for text in texts]
    size = max(len(texts), _FEWEST)
    weights = {term: _weight(sum(term in each for each in held), size) for term in want.terms}
    weights |= {
        each: _LONE * _weight(sum(each in text for text in texts), size) for each in want.characters - want.terms
    }
    return [_overlap(want, text, found, weights, size) for text, found in zip(texts, held, strict=True)]


def _overlap(
    want: Wanted, text: Vocabulary, found: frozenset[str], weights: dict[str, float], size: int
) -> Overlap:
    known = "".join(found)
    rare = _weight(1, size)
    otherwise = [term for term, named in want.concepts.items() if term not in found and named & text.concepts]
    # A word that the dictionary does not know counts where it is found; elsewhere nothing shows that it is one.
    beside = sum(pair in text and pair not in known for pair in want.pairs)
    by_characters = sum(
        weights[term] * sum(character in text for character in term) / len(term)
        for term in want.terms.difference(found, otherwise)
        if not term.isascii()
    )
    lone = [each for each in want.characters - want.terms if each in text]
    covered = sum(weights[term] for term in (*found, *lone)) + beside * rare + _BY_CHARACTERS * by_characters
    covered += _BY_CONCEPT * sum(weights[term] for term in otherwise)
    shared = len(found) + len(otherwise) + beside + len(lone) // _TWO
    return Overlap(covered / (sum(weights.values()) + (beside + _UNSAID) * rare), shared)


def _weight(holding: int, size: int) -> float:
    return math.log(1 + (size - holding + 0.5) / (holding + 0.5))
