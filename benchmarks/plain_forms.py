"""Ordinary messages that are taken for an order to memory: every one is printed, with the share.

    python -m benchmarks.plain_forms FOLDER

Reads `text` of every line of every `*.jsonl` below the folder. Nothing in such data is an order, unless somebody
gave one; each line that is printed is to be looked at.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from services.memory.plain_forms import plain_forms


def texts_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the set's name and the text of each line."""
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text = json.loads(line).get("text") if line.startswith("{") else None
            if isinstance(text, str) and text.strip():
                yield path.parent.name, text


def main() -> None:
    """Print what is found, and how long a message takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    messages: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    removing = 0
    begun = time.process_time()
    for name, text in texts_in(folder):
        messages[name] += 1
        for form in plain_forms(text):
            taken[name] += 1
            removing += form.kind not in {"remember", "remember_last", "standing"}
            print(f"{name}\t{form.kind}\t{' '.join(text.split())[-160:]}")
    seconds = time.process_time() - begun
    total = sum(messages.values())
    for name, count in messages.items():
        print(f"{name}: {taken[name]} of {count}")
    print(f"{sum(taken.values())} of {total} messages, {removing} of them to forget or leave out")
    print(f"{1e6 * seconds / max(total, 1):.0f} µs of CPU a message")


if __name__ == "__main__":
    main()
