"""Ordinary messages in which a secret is found: each is printed, with the share and the time.

    python -m benchmarks.secrets FOLDER

Reads `text` of every line of every `*.jsonl` below the folder. Every line that is printed is to be looked at.
"""

import argparse
import time
from pathlib import Path

from benchmarks.ordinary_messages import texts_in
from services.text.secrets import without_secrets


def main() -> None:
    """Print what would be left out of memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    without_secrets("1")  # loads the formats
    messages = changed = 0
    seconds = 0.0
    for name, text in texts_in(folder):
        messages += 1
        begun = time.process_time()
        left = without_secrets(text)
        seconds += time.process_time() - begun
        if left != text:
            changed += 1
            print(f"{name}\t{' '.join(left.split())[:160]}")
    print(f"{changed} of {messages} messages; {1e6 * seconds / max(messages, 1):.0f} µs of CPU a message")


if __name__ == "__main__":
    main()
