"""Sentences for training the recogniser of memory commands: frames whose places are filled by a fixed seed.

`data/memory_commands/frames/LANGUAGE.toml` holds the words for each place and, for each kind, the frames; `whole`
are commands that name nothing. Some sentences are written as people type: in lower case, without a mark at the
end, with two letters swapped.
"""

import random
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FRAMES = Path(__file__).parent / "data" / "memory_commands" / "frames"
_SEED = 13
_FILLINGS = 5
_IN_LOWER_CASE = 0.35
_WITHOUT_MARK = 0.3
_MISSPELT = 0.08
_PLACE = re.compile(r"\{(\w)\}")
_TARGETS = {"forget": "t", "do_not_remember": "f", "correct": "o", "standing": "w", "remember": "f"}
_SHORTEST_MISSPELT = 5


@dataclass(frozen=True)
class Filled:
    """A frame with words in its places."""

    text: str
    kind: str
    target: str = ""
    replacement: str = ""


def filled(language: str) -> list[Filled]:
    """All frames of a language, each filled in several ways; the same each time.

    Raises:
        KeyError: a frame has a place for which there are no words.
    """
    raw = tomllib.loads((_FRAMES / f"{language}.toml").read_text(encoding="utf-8"))
    slots = {name: re.split(r"\s*[|\n]\s*", words.strip()) for name, words in raw.pop("slots").items()}
    drawn = random.Random(_SEED)
    found = [each for kind, entry in raw.items() for each in _of_kind(kind, entry, slots, drawn)]
    return list(dict.fromkeys(found))


def _of_kind(
    kind: str, entry: Mapping[str, Any], slots: Mapping[str, list[str]], drawn: random.Random
) -> Iterator[Filled]:
    for frame in [*entry["frames"].strip().splitlines(), *entry.get("whole", "").strip().splitlines()]:
        for _ in range(_FILLINGS):
            words = {name: drawn.choice(slots[name]) for name in _PLACE.findall(frame)}
            text = _as_typed(frame.format_map(words), drawn)
            yield Filled(
                text,
                kind,
                words.get(_TARGETS.get(kind, ""), ""),
                words.get("n", "") if kind == "correct" else "",
            )


def _as_typed(text: str, drawn: random.Random) -> str:
    if text[0].islower() and drawn.random() > _IN_LOWER_CASE:
        text = text[0].upper() + text[1:]
    elif drawn.random() < _IN_LOWER_CASE:
        text = text.lower()
    if drawn.random() < _WITHOUT_MARK:
        text = text.rstrip(".。!！")
    words = [found for found in re.finditer(r"[a-z]+", text) if len(found.group()) >= _SHORTEST_MISSPELT]
    if words and drawn.random() < _MISSPELT:
        at = drawn.choice(words).start() + drawn.randint(1, _SHORTEST_MISSPELT - 3)
        text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text
