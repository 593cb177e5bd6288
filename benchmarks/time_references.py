"""How many references to time are read as public test suites read them, and how long that takes.

`python -m benchmarks.time_references FOLDER`, or the folder in ANAMNESIS_TIME_DATA

The folder holds `zh_dev.jsonl`, `en_dev.jsonl` (`text, reference_datetime, expected_start, expected_end, alt,
kind, direction` a line) and `zh_negatives_dev.jsonl`, `en_negatives_dev.jsonl` (`text`). Another suffix than `dev`
is given by `--split`. A row is right if one of the ranges found is the expected one or one of `alt`; *only* counts
rows for which that is the only one found. Holidays are left out. µs are the median of rounds over all rows.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from services.time_reference.parse import parse

LANGUAGES = ("zh", "en")
_ROUNDS = 15
_SOME_DAY = datetime(2026, 11, 21, 12)


@dataclass(frozen=True, slots=True)
class Row:
    """A text, when it was said, and the ranges that are right for it: none for a text that names no time."""

    text: str
    now: datetime
    right: frozenset[tuple[date, date]]
    direction: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Rows, and the share of them that was read rightly: by any range, by the first, by the only one."""

    rows: int
    lenient: float
    first: float
    only: float


def _lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def read_rows(path: Path) -> list[Row]:
    """The rows of a suite, without its holidays."""
    return [
        Row(
            line["text"],
            datetime.fromisoformat(line["reference_datetime"]),
            frozenset(
                (date.fromisoformat(start), date.fromisoformat(end))
                for start, end in [(line["expected_start"], line["expected_end"]), *line["alt"]]
            ),
            line["direction"],
        )
        for line in _lines(path)
        if line["kind"] != "holiday"
    ]


def figures_of(rows: Sequence[Row]) -> Figures:
    """How many of the rows are read rightly."""
    lenient = first = only = 0
    for row in rows:
        right = [(found.start, found.end) in row.right for found in parse(row.text, row.now)]
        lenient += any(right)
        first += right[:1] == [True]
        only += right == [True]
    count = max(len(rows), 1)
    return Figures(len(rows), lenient / count, first / count, only / count)


def microseconds(rows: Sequence[Row]) -> float:
    """Return the time of a call: the median over rounds of their mean."""
    taken = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        for row in rows:
            parse(row.text, row.now)
        taken.append((time.perf_counter() - begun) / len(rows) * 1e6)
    return statistics.median(taken)


def parse_section(folder: Path, split: str, show: Callable[[str], None]) -> Table:
    """Ranges against the suites; `show` is given each past or present row that is read otherwise."""
    table = Table(title="parse: ranges as the suites have them")
    table.add_column("")
    for heading in ("past, now", "lenient", "first", "only", "future", "lenient", "false hits", "µs"):
        table.add_column(heading, justify="right")
    for language in LANGUAGES:
        rows = read_rows(folder / f"{language}_{split}.jsonl")
        past = [row for row in rows if row.direction != "future"]
        negatives = [line["text"] for line in _lines(folder / f"{language}_negatives_{split}.jsonl")]
        hit = [text for text in negatives if parse(text, _SOME_DAY)]
        for row in past:
            found = parse(row.text, row.now)
            if not any((each.start, each.end) in row.right for each in found):
                said = "; ".join(f"{each.text} {each.start}..{each.end}" for each in found) or "nothing"
                show(f"{language} {row.now:%Y-%m-%d} {row.text} -> {said}")
        ours, future = figures_of(past), figures_of([row for row in rows if row.direction == "future"])
        table.add_row(
            *(language, str(ours.rows), f"{ours.lenient:.3f}", f"{ours.first:.3f}", f"{ours.only:.3f}"),
            *(str(future.rows), f"{future.lenient:.3f}", f"{len(hit)} of {len(negatives)}"),
            f"{microseconds(rows):.0f}",
        )
    return table


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("ANAMNESIS_TIME_DATA"), type=Path)
    parser.add_argument("--split", default="dev", help="the suites' suffix")
    parser.add_argument("--misses", action="store_true", help="list the rows that are read otherwise")
    options = parser.parse_args()
    if options.folder is None or not (options.folder / f"zh_{options.split}.jsonl").is_file():
        print("There are no suites: name their folder, or set ANAMNESIS_TIME_DATA.", file=sys.stderr)
        sys.exit(2)
    console = Console()
    sections: list[Callable[[Path, str, Callable[[str], None]], Table]] = [parse_section]
    for section in sections:
        misses: list[str] = []
        console.print(section(options.folder, options.split, misses.append))
        if options.misses:
            for miss in misses:
                console.print(miss, markup=False, highlight=False)


if __name__ == "__main__":
    main()
