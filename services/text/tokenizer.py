"""Terms for indexing and searching a message: English stems, Chinese words and pairs of Chinese characters.

The full-text index of a general store splits neither Chinese nor inflected English well. It is therefore given
finished terms, joined by spaces. No term holds punctuation, because such an index would split it there.
"""

import re
import threading
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import add
from typing import NamedTuple

from services.text.caches import text_cache
from services.text.cue_words import WEAK_WORDS
from services.text.dictionary import TOTAL, dictionary

_HAN = "\u3400-\u9fff\uf900-\ufaff"
_RUN = re.compile(
    r"[a-z0-9][a-z0-9._%+-]{0,63}@[a-z0-9-]+(?:\.[a-z0-9-]+)+"
    r"|[0-9]+(?:[.:/-][0-9]+)+"
    rf"|[^\W_{_HAN}]+(?:'[^\W\d_{_HAN}]+)?"
    rf"|[{_HAN}]+"
)

_CHINESE = re.compile(f"[{_HAN}]")
_ENGLISH_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_PART = re.compile(r"[^\W_]+")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})

_ENGLISH_STOP_WORDS = """
a an and are as at be been but by can could did do does for from had has have he her his how i i'm if in is it
it's its me my of on or our she so that the their them then there they this to was we were what when where
which who why will with would you your
about after again all also am any because before being both doing down during each few further here hers
herself him himself i'd i'll i've into itself just let's more most myself no nor not off once only other ours
ourselves out over own same should some such than that's theirs themselves these those through too under until
up very we'd we'll we're we've what's whom won't yours yourself yourselves you'd you'll you're you've don't
didn't doesn't isn't wasn't can't couldn't wouldn't he's she's there's hey hi oh wow yeah yes ok okay
"""
_CHINESE_STOP_WORDS = """
什么 怎么 怎样 多少 哪个 哪些 哪里 哪儿 这个 那个 这些 那些 一个 一些 我们 你们 他们 她们 它们 自己 还有 还是
因为 所以 但是 可以 就是 没有 不是 以及 以后 之后 之前 来着 如果 然后 而且 或者 已经 现在 时候 觉得 知道 真的
非常 是不是
"""
_CHINESE_CHARACTERS = "的了是我你他她它们吗呢吧啊在和也都就不有这那个上下来去说要会很到着与及或把被让给对从"
_STOP = frozenset([*_ENGLISH_STOP_WORDS.split(), *_CHINESE_STOP_WORDS.split(), *_CHINESE_CHARACTERS])
_OF_AN_ANSWER = 240
"""Bytes of an assistant's answer that are embedded: as many English characters, or a third as many Chinese
ones. The subject stands at the beginning, and the encoder's time grows with the text."""
_NONE: frozenset[str] = frozenset()
_LONGEST_TERM = 64
_LONGEST_RUN = 64
_SHORT = 500
_PAIR = 2


class _Tools(NamedTuple):
    stem: Callable[[str], str]
    simplify: Callable[[str], str]
    segment: Callable[[str], list[str]]


_lock = threading.Lock()
_loaded: list[_Tools] = []


def warm() -> None:
    """Load the dictionaries before the first message needs them."""
    _tools()


def simplified(text: str) -> str:
    """Fold traditional Chinese characters to simplified ones."""
    if not _CHINESE.search(text):
        return text
    return (_remembered_simplified if len(text) <= _SHORT else _simplified)(text)


def _simplified(text: str) -> str:
    return _tools().simplify(text)


_remembered_simplified = text_cache(256)(_simplified)


def simplified_text(text: str) -> str:
    """Fold a text to half width, lower case and simplified Chinese."""
    return simplified(unicodedata.normalize("NFKC", text).lower())


def english_words(text: str) -> list[str]:
    """Return all English words and numbers of a text in lower case and in order, including stop words."""
    return _ENGLISH_WORD.findall(unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).lower())


def indexed_text(speaker: str, text: str) -> str:
    """Return the text to embed and to split into terms: `Speaker: text`, or the text alone if nobody is named."""
    return f"{speaker}: {text}" if speaker else text


def embedded_text(role: str, speaker: str | None, text: str) -> str:
    """Return the part of a message that is embedded: only the beginning of an answer by an unnamed author."""
    if role == "assistant" and not speaker:
        return text[:_OF_AN_ANSWER].encode()[:_OF_AN_ANSWER].decode(errors="ignore")
    return indexed_text(speaker or "", text)


def terms(text: str) -> list[str]:
    """Return the terms of a text, with repetitions; empty for a text of stop words.

    Full-width forms and traditional characters are folded. English words become lower-case stems (Porter2); stop
    words are left out. A run of Chinese yields its characters, its pairs of neighbouring characters, and the words
    of jieba's search mode. An e-mail address, or a number with separators, is one term, and so is each of its
    parts.
    """
    return list((_remembered_terms if len(text) <= _SHORT else _terms)(text))


def _terms(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for run in _runs(text):
        found += _chinese(run) if _CHINESE.match(run) else _other(run)
    return tuple(found)


# A turn tokenizes a message several times: to search, to rank and to show it.
_remembered_terms = text_cache(512)(_terms)


def informative_terms(text: str) -> frozenset[str]:
    """Return the terms that a related text is expected to share. General words are left out, and so are Chinese
    pairs that are no words: pairs serve searching, and most of them straddle two words."""
    return (_remembered_informative if len(text) <= _SHORT else _all_informative)(text)


def _all_informative(text: str) -> frozenset[str]:
    return frozenset(_informative(text))


_remembered_informative = text_cache(512)(_all_informative)


def is_informative(text: str) -> bool:
    return any(_informative(text))


def _informative(text: str) -> Iterator[str]:
    for run in _runs(text):
        if _CHINESE.match(run) and len(run) > 1:
            found: Iterable[str] = [word for word in _segment(run) if len(word) > 1 and not _is_stop(word)]
        else:
            found = _chinese(run) if _CHINESE.match(run) else _other(run)
        yield from (term for term in found if not is_weak(term))


def shared_terms(texts: Iterable[str], asked: Collection[str]) -> list[int]:
    """Return how many of the terms in `asked` each text has."""
    wanted = frozenset(asked)
    long = [term for term in wanted if len(term) > _PAIR and _CHINESE.match(term)]
    return [len(_NONE.union(*(_shared(run, wanted, long) for run in _runs(text)))) for text in texts]


def _shared(run: str, wanted: frozenset[str], long: Sequence[str]) -> frozenset[str]:
    if not _CHINESE.match(run):
        return wanted.intersection(_other(run))
    if any(term in run for term in long):
        return wanted.intersection(_chinese(run))
    # Shorter terms are found without splitting the run into words.
    return wanted.intersection([*run, *map(add, run, run[1:])])


def _runs(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).lower()
    return _RUN.findall(simplified(folded))


def is_weak(term: str) -> bool:
    """Return whether a term is too general to count as evidence by itself."""
    return term in _weak_terms()


@lru_cache(maxsize=1)
def _weak_terms() -> frozenset[str]:
    weak = WEAK_WORDS["en"] | WEAK_WORDS["zh"]
    return weak.union(*(terms(word) for word in weak))


def _chinese(run: str) -> tuple[str, ...]:
    # The messages before a new message are tokenized again with it.
    return (_remembered_chinese if len(run) <= _LONGEST_RUN else _terms_of_chinese)(run)


def _terms_of_chinese(run: str) -> tuple[str, ...]:
    stops = [character in _STOP for character in run]
    characters = [character for character, is_stop in zip(run, stops, strict=True) if not is_stop]
    if len(run) == 1:
        return tuple(characters)
    # Words alone do not suffice: 一只狗 yields 狗, but 狗叫 does not.
    pairs = [
        pair
        for at in range(len(run) - 1)
        if not (stops[at] and stops[at + 1]) and (pair := run[at : at + _PAIR]) not in _STOP
    ]
    return (*pairs, *(word for word in _segment(run) if len(word) > 1 and not _is_stop(word)), *characters)


_remembered_chinese = text_cache(1_024)(_terms_of_chinese)


def _segment(run: str) -> tuple[str, ...]:
    """Return the words of a run of Chinese; a run longer than any sentence is split in cached pieces."""
    pieces = (run[at : at + _LONGEST_RUN] for at in range(0, len(run), _LONGEST_RUN))
    return tuple(chain.from_iterable(map(_remembered_segment, pieces)))


@text_cache(1_024)
def _remembered_segment(run: str) -> tuple[str, ...]:
    # A turn tokenizes a message several times: to understand it, to search, to rank and to compare.
    return tuple(_tools().segment(run))


def _is_stop(term: str) -> bool:
    """Return whether a Chinese term is a stop word, or a pair across two one-character stop words."""
    return term in _STOP or (len(term) == _PAIR and term[0] in _STOP and term[1] in _STOP)


@text_cache(32_768)
def _other(run: str) -> tuple[str, ...]:
    if run in _STOP:
        return ()
    if "'" in run:
        return ("".join(_PART.findall(_stem(run))),)
    parts = _PART.findall(run[: 4 * _LONGEST_TERM])
    if len(parts) > 1:
        return ("".join(parts)[:_LONGEST_TERM], *(part[:_LONGEST_TERM] for part in parts))
    return tuple(_stem(part[:_LONGEST_TERM]) for part in parts)


def _stem(word: str) -> str:
    # A stemmer object keeps the current word as state, so threads do not share one.
    with _lock:
        return _tools_locked().stem(word)


def _tools() -> _Tools:
    if _loaded:
        return _loaded[0]
    with _lock:
        return _tools_locked()


def _tools_locked() -> _Tools:
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0]


def _load() -> _Tools:
    with warnings.catch_warnings():
        # jieba's modules have invalid escapes and an import; newer Pythons warn about both.
        warnings.simplefilter("ignore")
        import jieba  # noqa: PLC0415 — 16 MB, for processes that cut a text
        import opencc  # noqa: PLC0415
        import snowballstemmer  # noqa: PLC0415
    tokenizer = jieba.Tokenizer()
    # jieba's own loading takes half a second and trusts a cache file in a world-writable directory.
    tokenizer.FREQ, tokenizer.total, tokenizer.initialized = dictionary(), TOTAL, True
    # jieba makes two passes over a run and asks for each piece twice; one pass suffices and asks for less.
    tokenizer.get_DAG = lambda _: None
    tokenizer.calc = lambda run, _, route: dictionary().likeliest(run, route)

    def segment(run: str) -> list[str]:
        return list(tokenizer.cut_for_search(run))

    return _Tools(snowballstemmer.stemmer("english").stemWord, opencc.OpenCC("t2s").convert, segment)
