"""The words of feeling, read from the data files of this package; one per language, and one for signs."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

from state.prompt import Emotion

EMOTIONS: tuple[Emotion, ...] = get_args(Emotion)

Role = Literal["negator", "booster", "damper", "other", "self", "stop", "neutral", "courtesy"]
"""Effect of a word on the feelings around it; a neutral one takes the place of words that it contains, and a
courtesy says little where something is asked for."""

_ROLES: Mapping[str, Role] = {
    "neutral": "neutral",
    "stops": "stop",
    "others": "other",
    "selves": "self",
    "boosters": "booster",
    "dampers": "damper",
    "negators": "negator",
    "courtesies": "courtesy",
}
_CHOICE = re.compile(r"\{([^{}]*)\}")
"""One of several words: `{can't|cannot} sleep`."""
_CHARACTER = re.compile("[a-z]+|[0-9]+|.")
"""A unit of Chinese, or of what is written among it."""
_VOWELS = "aeiou"


@dataclass(frozen=True)
class Entry:
    """What a word or phrase means."""

    feelings: Mapping[Emotion, float]
    """Weight for each emotion; 1.0 is a plain word of it."""
    roles: frozenset[Role]


class Phrases:
    """Phrases to be found in a sequence of units: words of English, characters of Chinese."""

    def __init__(self, phrases: Iterable[str], joint: str) -> None:
        """Take the phrases, and what stands between their units: a space, or nothing."""
        self._joint = joint
        self._phrases = frozenset(phrases)
        lengths: dict[str, set[int]] = {}
        for phrase in self._phrases:
            units = _units(phrase, joint)
            lengths.setdefault(units[0], set()).add(len(units))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def found_in(self, units: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Begin, end and text of those found, in order, the longest at each place; none overlap."""
        place = 0
        while place < len(units):
            for length in self._lengths.get(units[place], ()):
                text = self._joint.join(units[place : place + length])
                if text in self._phrases:
                    yield place, place + length, text
                    place += length
                    break
            else:
                place += 1


@dataclass(frozen=True)
class Lexicon:
    """Words and phrases of one language."""

    entries: Mapping[str, Entry]
    phrases: Phrases
    """Those of `entries`."""
    dissatisfied: Phrases
    """What is said of an answer that was no good."""
    satisfied: Phrases


@lru_cache(maxsize=1)
def chinese() -> Lexicon:
    """Simplified Chinese."""
    return _lexicon(_read("chinese.toml"), _words, "")


@lru_cache(maxsize=1)
def english() -> Lexicon:
    """Lower-case English."""
    return _lexicon(_read("english.toml"), _inflected_phrases, " ")


@lru_cache(maxsize=1)
def signs() -> Mapping[str, tuple[Emotion, float]]:
    """Emoji and emoticons."""
    table = _read("signs.toml")
    return {
        sign: (emotion, float(weight))
        for emotion in EMOTIONS
        for weight, text in table[emotion].items()
        for sign in text.split()
    }


def load() -> None:
    """Read the files, which takes a tenth of a second, so that no message has to wait for them."""
    chinese()
    english()
    signs()


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("services.tone") / name).read_text(encoding="utf-8"))


def _lexicon(table: dict[str, Any], split: Callable[[str], Iterable[str]], joint: str) -> Lexicon:
    feelings: dict[str, dict[Emotion, float]] = {}
    for emotion in EMOTIONS:
        for weight, lines in table[emotion].items():
            for phrase in _phrases(lines, split):
                known = feelings.setdefault(phrase, {})
                known[emotion] = max(known.get(emotion, 0.0), float(weight))
    roles: dict[str, set[Role]] = {}
    for name, role in _ROLES.items():
        for phrase in _phrases(table["words"][name], split):
            roles.setdefault(phrase, set()).add(role)
    entries = {
        phrase: Entry(feelings.get(phrase, {}), frozenset(roles.get(phrase, ())))
        for phrase in feelings.keys() | roles.keys()
    }
    reactions = table["reactions"]
    return Lexicon(
        entries,
        Phrases(entries, joint),
        Phrases(_phrases(reactions["dissatisfied"], split), joint),
        Phrases(_phrases(reactions["satisfied"], split), joint),
    )


def _phrases(lines: Iterable[str], split: Callable[[str], Iterable[str]]) -> Iterator[str]:
    for line in lines:
        for phrase in split(line):
            yield from _spelled_out(phrase)


def _spelled_out(phrase: str) -> list[str]:
    """A phrase once with each of its choices."""
    choice = _CHOICE.search(phrase)
    if choice is None:
        return [" ".join(phrase.split())]
    before, behind = phrase[: choice.start()], phrase[choice.end() :]
    return [each for word in choice[1].split("|") for each in _spelled_out(f"{before}{word}{behind}")]


def _units(phrase: str, joint: str) -> list[str]:
    return phrase.split(joint) if joint else _CHARACTER.findall(phrase)


def _words(text: str) -> list[str]:
    return text.split()


def _inflected_phrases(text: str) -> Iterator[str]:
    for phrase in (part.strip() for part in text.split(",")):
        if phrase.endswith("+"):
            yield from _inflected(phrase[:-1])
        elif phrase:
            yield phrase


def _inflected(verb: str) -> list[str]:
    """A regular verb's forms."""
    if verb.endswith("e"):
        return [verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"]
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return [verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"]
    return [verb, f"{verb}s", f"{verb}ed", f"{verb}ing"]
