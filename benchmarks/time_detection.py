"""Detection of references to past conversation, over sentences of our own.

`python -m benchmarks.time_detection [--misses]`
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from services.time_reference.detect import detect
from state.prompt import TimeReference

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_SENTENCES = Path(__file__).parent / "time_sentences"
SETS = (7, 8, 9, 10)
"""Each was written before the rules had been tuned on it; see docs/evaluation.md."""
_COLUMNS = (("range", 7), ("detail", 8))
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """Reference that was found in a sentence, beside the right one."""

    sentence: dict[str, Any]
    found: TimeReference | None

    @property
    def hit(self) -> bool:
        return self.sentence["refers"] and self.found is not None

    def right(self, key: str) -> bool | None:
        """Whether this was told rightly; None where the sentence does not say or was not found."""
        if self.found is None or not self.sentence["refers"]:
            return None
        if key == "range":
            expected = [self.sentence.get(name) for name in ("kind", "start", "end")]
            if expected[0] == "days" and expected[1] is None:
                return None
            days = [day.isoformat() if day else None for day in (self.found["start_date"], self.found["end_date"])]
            return expected == [self.found["kind"], *days]
        expected_flag = self.sentence.get(key)
        return None if expected_flag is None else bool(expected_flag == self.found[key])  # type: ignore[literal-required]


def sentences(language: Language) -> list[dict[str, Any]]:
    """The sentences of a language, in order."""
    lines = (_SENTENCES / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def judged(of: Sequence[dict[str, Any]]) -> list[Verdict]:
    """Judge the detection for each sentence."""
    return [Verdict(s, detect(s["text"], s["timezone"], datetime.fromisoformat(s["now"]))) for s in of]


def precision(verdicts: Sequence[Verdict]) -> float:
    """The share of those found that refer to past conversation."""
    return _share([verdict.sentence["refers"] for verdict in verdicts if verdict.found is not None])


def recall(verdicts: Sequence[Verdict]) -> float:
    """The share of those that refer to past conversation that are found."""
    return _share([verdict.hit for verdict in verdicts if verdict.sentence["refers"]])


def rightness(verdicts: Sequence[Verdict], key: str) -> float:
    """Return the share of found references whose `range` or `detail` is right."""
    return _share([right for verdict in verdicts if (right := verdict.right(key)) is not None])


def tasks(verdicts: Sequence[Verdict]) -> float:
    """The share of those found that ask for more than a record which are left to the model."""
    asked = [verdict.found for verdict in verdicts if verdict.sentence.get("alone") is False]
    return _share([not found["plain"] for found in asked if found is not None])


def main(options: Sequence[str]) -> None:
    """Print the figures, and with `--misses` every wrong answer."""
    print(f"{'':10}{'sentences':>10}{'precision':>10}{'recall':>8}{'range':>7}{'detail':>8}{'tasks':>7}{'µs':>6}")
    for language in LANGUAGES:
        all_of = sentences(language)
        for part in (*SETS, None):
            of = [sentence for sentence in all_of if part in (None, sentence["set"])]
            if not of:
                continue
            verdicts = judged(of)
            figures = "".join(f"{rightness(verdicts, key):>{width}.2f}" for key, width in _COLUMNS)
            print(
                f"{language} {f'set {part}' if part else 'all':7}{len(of):>10}{precision(verdicts):>10.3f}"
                f"{recall(verdicts):>8.3f}{figures}{tasks(verdicts):>7.2f}{_microseconds(of):>6.0f}"
            )
            if "--misses" in options and part:
                _print_misses(verdicts)


def _print_misses(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        refers, found = verdict.sentence["refers"], verdict.found
        wrong = [key for key, _ in _COLUMNS if verdict.right(key) is False]
        if refers == (found is not None) and not wrong:
            continue
        reason = ", ".join(wrong) or ("missed" if refers else "refers to nothing")
        shown = {key: str(value) for key, value in found.items()} if found and wrong else ""
        print(f"    {reason}: {verdict.sentence['text']} {shown}")


def _microseconds(of: Sequence[dict[str, Any]]) -> float:
    """The least mean of several rounds: the machine may be busy with other things."""
    means = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        judged(of)
        means.append((time.perf_counter() - begun) / len(of) * 1e6)
    return min(means)


def _share(of: Sequence[bool]) -> float:
    return sum(of) / len(of) if of else 1.0


if __name__ == "__main__":
    main(sys.argv[1:])
