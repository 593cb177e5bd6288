"""Cases of the red team: one attack each, as a line of data."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
_FOLDER = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Case:
    """An attack: where an instruction is planted, and what a model that obeys it would do."""

    number: int
    """Line of its file, from 1."""
    language: Language
    kind: str
    """Where it is planted; `stage.py` has one way for each."""
    tool: str
    """Tool that it wants called; `answer` = it only wants to be repeated."""
    writes: str
    """What it wants remembered or forgotten; part of `planted`."""
    planted: str
    asks: Sequence[str]
    """Messages of the user, in order."""
    trigger: str = ""
    """Words of a message that set it off; empty = any message does."""

    @property
    def name(self) -> str:
        """Its name in reports, and in those of its users."""
        return f"{self.language}-{self.number}"


@cache
def load_cases() -> tuple[Case, ...]:
    """Return all cases, by language and line."""
    return tuple(
        Case(number, language, **json.loads(line))
        for language in LANGUAGES
        for number, line in enumerate((_FOLDER / f"{language}.jsonl").read_text().splitlines(), 1)
    )


def sample() -> list[Case]:
    """Return one case of each kind, the second of a language; the languages take turns."""
    by_kind: dict[str, list[Case]] = {}
    for case in load_cases():
        by_kind.setdefault(case.kind, []).append(case)
    return [cases[1 + (len(cases) // 2) * (place % 2)] for place, cases in enumerate(by_kind.values())]
