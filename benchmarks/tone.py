"""Which emotion a message is heard to express, over sentences of our own and over labelled files of others.

`python -m benchmarks.tone [FOLDER] [--misses]`: every `*.jsonl` of the folder is a set, a line is `{text, tone}`.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from services.text.tokenizer import warm
from services.tone.scoring import scores_of
from services.tone.turn_tone import dominant_of
from state.prompt import DominantTone

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
Part = Literal["tuning", "development", "held out", "unseen"]
PARTS: tuple[Part, ...] = get_args(Part)
"""The lexicons were mended by the first two; of the others only how often each entry was right was counted."""
LABELS: tuple[DominantTone, ...] = get_args(DominantTone)

_SENTENCES = Path(__file__).parent / "tone_sentences"
_FILES: dict[Part, str] = {
    "tuning": "{}.tsv",
    "development": "{}.dev.tsv",
    "held out": "{}.heldout.tsv",
    "unseen": "{}.unseen.tsv",
}
_NOT_TO_MEND_BY: tuple[Part, ...] = ("held out", "unseen")
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was heard in a sentence."""

    text: str
    expected: DominantTone
    heard: DominantTone


def sentences(language: Language, part: Part) -> list[tuple[DominantTone, str]]:
    """The sentences of a language with their labels, in order."""
    lines = (_SENTENCES / _FILES[part].format(language)).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t", 1) for line in lines)
    return [(label, text) for label, text in pairs]  # type: ignore[misc]


def labelled(file: Path) -> list[tuple[DominantTone, str]]:
    """The lines of a labelled file, in order."""
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [(line["tone"], line["text"]) for line in lines]


def judged(of: Sequence[tuple[DominantTone, str]]) -> list[Verdict]:
    """What is heard in each sentence, as the first message of a conversation."""
    return [Verdict(text, label, dominant_of(scores_of(text))) for label, text in of]


def figures(verdicts: Sequence[Verdict], label: DominantTone) -> tuple[float, float, float]:
    """Precision, recall and F1 of one label."""
    heard = sum(verdict.heard == label for verdict in verdicts)
    expected = sum(verdict.expected == label for verdict in verdicts)
    right = sum(verdict.heard == label == verdict.expected for verdict in verdicts)
    precision = right / heard if heard else 0.0
    recall = right / expected if expected else 0.0
    return precision, recall, 2 * right / (heard + expected) if heard + expected else 0.0


def macro_f1(verdicts: Sequence[Verdict]) -> float:
    """The mean of F1 over the labels that the set has, neutral included."""
    labels = {verdict.expected for verdict in verdicts}
    return sum(figures(verdicts, label)[2] for label in labels) / len(labels)


def false_alarms(verdicts: Sequence[Verdict]) -> float:
    """The share of neutral messages in which a feeling is heard."""
    neutral = [verdict for verdict in verdicts if verdict.expected == "neutral"]
    return sum(verdict.heard != "neutral" for verdict in neutral) / len(neutral) if neutral else 0.0


def main(options: Sequence[str]) -> None:
    """Print the figures, and with `--misses` which sentences are heard wrongly, but for those held out."""
    warm()
    for language in LANGUAGES:
        for part in PARTS:
            shows_misses = "--misses" in options and part not in _NOT_TO_MEND_BY
            _print_set(f"{language} {part}", sentences(language, part), shows_misses=shows_misses)
    for folder in (option for option in options if option != "--misses"):
        for file in sorted(Path(folder).glob("*.jsonl")):
            _print_set(file.stem, labelled(file), shows_misses="--misses" in options)
    longest = "I am a little worried about this, but thank you. 我有点担心，不过谢谢你。" * 800
    print(f"a message of {len(longest)} characters: {_microseconds([longest]):.0f} µs")


def _print_set(name: str, of: Sequence[tuple[DominantTone, str]], *, shows_misses: bool) -> None:
    verdicts = judged(of)
    print(
        f"{name}: {len(of)} messages, macro-F1 {macro_f1(verdicts):.3f}, "
        f"false alarms {false_alarms(verdicts):.3f}, {_microseconds([text for _, text in of]):.0f} µs a call"
    )
    _print_table(verdicts)
    if shows_misses:
        for verdict in verdicts:
            if verdict.heard != verdict.expected:
                print(f"    {verdict.expected} heard as {verdict.heard}: {verdict.text}")


def _print_table(verdicts: Sequence[Verdict]) -> None:
    confusion = Counter((verdict.expected, verdict.heard) for verdict in verdicts)
    print(f"  {'':12}{'P':>6}{'R':>6}{'F1':>6}   heard as " + "".join(f"{label[:6]:>8}" for label in LABELS))
    for label in LABELS:
        precision, recall, f1 = figures(verdicts, label)
        row = "".join(f"{confusion[label, heard]:>8}" for heard in LABELS)
        print(f"  {label:12}{precision:>6.2f}{recall:>6.2f}{f1:>6.2f}            {row}")


def _microseconds(of: Sequence[str]) -> float:
    """The least mean of several rounds: the machine may be busy with other things."""
    means = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        for text in of:
            scores_of(text)
        means.append((time.perf_counter() - begun) / len(of) * 1e6)
    return min(means)


if __name__ == "__main__":
    main(sys.argv[1:])
