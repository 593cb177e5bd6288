"""Measure how well rules alone read plain statements: `python -m benchmarks.facts_stated [--misses]`.

Each line of the data is a message with the facts to file. A fact that is filed is right when its field and its
words are among them; precision counts what was filed, recall what was to be filed.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from services.memory.agent.facts import facts_of

FOLDER = Path(__file__).parent


@dataclass
class Figures:
    """What came of one language."""

    messages: int = 0
    filed: int = 0
    wanted: int = 0
    right: int = 0
    misses: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Of what was filed, the share that is right."""
        return self.right / self.filed if self.filed else 1.0

    @property
    def recall(self) -> float:
        """Of what was to be filed, the share that was."""
        return self.right / self.wanted if self.wanted else 1.0


def statements(path: Path) -> Iterator[tuple[str, list[tuple[bool, str, str]]]]:
    """Yield each message with its facts: whether it has ended, the field, and words of the text."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            message, _, facts = line.rpartition("|")
            parts = [part.strip() for part in facts.split(";") if part.strip()]
            yield message.strip(), [(part[0] == "-", *_pair(part.lstrip("-"))) for part in parts]


def measure(path: Path) -> Figures:
    """Read every message of a file."""
    figures = Figures()
    for message, wanted in statements(path):
        found = facts_of(message)
        left = list(wanted)
        for fact in found:
            match = next(
                (each for each in left if each[:2] == (fact.ended, fact.field) and each[2] in fact.text), None
            )
            if match:
                left.remove(match)
        right = len(wanted) - len(left)
        figures.messages += 1
        figures.filed += len(found)
        figures.wanted += len(wanted)
        figures.right += right
        if left or right < len(found):
            filed = "; ".join(f"{'-' if fact.ended else ''}{fact.field}={fact.text}" for fact in found)
            missing = "; ".join(f"{name}={words}" for _, name, words in left)
            figures.misses.append(f"{message}  filed: {filed or 'nothing'}  missing: {missing or 'nothing'}")
    return figures


def _pair(part: str) -> tuple[str, str]:
    name, _, words = part.partition("=")
    return re.sub(r"\s", "", name), words.strip()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="How well rules alone read plain statements.")
    parser.add_argument("--misses", action="store_true", help="print what was missed or filed wrongly")
    asked = parser.parse_args()
    for path in sorted(FOLDER.glob("*.txt")):
        figures = measure(path)
        print(
            f"{path.stem:10} {figures.messages:4} messages  precision {figures.precision:.3f}  "
            f"recall {figures.recall:.3f}  ({figures.filed} filed, {figures.wanted} wanted)"
        )
        if asked.misses:
            print("\n".join(f"  {miss}" for miss in figures.misses))


if __name__ == "__main__":
    main()
