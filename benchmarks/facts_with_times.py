"""How well rules alone read when a fact holds: `python -m benchmarks.facts_with_times [--misses]`.

Each record of `data/facts_with_times` is a message with the day it was said and the facts it states: words that
the fact holds, from when to when it is so, and whether it is over. A fact is found where a value is filed that
holds the words; it is right where its times are the same as well.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from services.memory.agent.decisions import dated
from services.memory.agent.fact_filing import plan_of_facts
from services.memory.agent.facts import facts_of
from services.memory.agent.plan import CoreChange, NewMemory
from services.time_reference.validity import ALWAYS, Validity, of_mark, with_mark

FOLDER = Path(__file__).parent / "data" / "facts_with_times"


@dataclass(frozen=True)
class Stated:
    """What a message states, as its writer noted it."""

    words: tuple[str, ...]
    text_of_times: str
    """The mark that a value with these times has."""
    is_over: bool

    @classmethod
    def of(cls, state: dict[str, Any], today: date) -> "Stated":
        """Read the state of a record."""
        marked = with_mark("x", _validity(state), today)
        over = bool(state["ended"]) or of_mark(marked).validity.is_over(today)
        return cls(tuple(state["words"]), marked.removeprefix("x").strip(), over)


def _validity(state: dict[str, Any]) -> Validity:
    mark = {
        (True, True): "({0} to {1})",
        (True, False): "(since {0})",
        (False, True): "(until {1})",
        (False, False): "(formerly)" if state["ended"] else "",
    }[bool(state["valid_from"]), bool(state["valid_to"])]
    return of_mark(f"x {mark.format(state['valid_from'], state['valid_to'])}".strip()).validity if mark else ALWAYS


def filed(message: str, at: datetime) -> Iterator[str]:
    """Yield the values and memories that rules file of a message, each with its mark."""
    for planned in plan_of_facts(facts_of(message), {}, has_core=True):
        change = dated(planned, at, "UTC")
        if isinstance(change, CoreChange) and isinstance(change.value, str):
            yield change.value
        elif isinstance(change, NewMemory):
            yield change.content


def judge(record: dict[str, Any], counts: Counter[str]) -> str:
    """Count what came of one message; return what is wrong with it, if anything."""
    at = datetime.fromisoformat(record["said_at"]).replace(tzinfo=UTC)
    left = list(filed(record["message"], at))
    all_filed, wrong = list(left), []
    for state in record["states"]:
        stated = Stated.of(state, at.date())
        counts["stated"] += 1
        counts["timed"] += bool(stated.text_of_times)
        value = next(
            (each for each in left if all(word.casefold() in each.casefold() for word in stated.words)), None
        )
        if value is None:
            wrong.append(f"not filed: {state['words']}")
            continue
        left.remove(value)
        counts["found"] += 1
        validity = of_mark(value).validity
        same = with_mark("x", validity, at.date()).removeprefix("x").strip() == stated.text_of_times
        right = same or (
            validity != ALWAYS and validity.is_over(at.date()) and stated.text_of_times == "(formerly)"
        )
        counts["right"] += right
        counts["timed right"] += right and bool(stated.text_of_times)
        counts["timed filed"] += validity != ALWAYS
        counts["over shown as so"] += stated.is_over and not validity.is_over(at.date())
        if not right:
            wrong.append(f"{value!r} instead of {stated.text_of_times or 'no time'}")
    more = [value for value in left if of_mark(value).validity != ALWAYS]
    counts["timed filed"] += len(more)
    counts["untold"] += 0 if record["states"] else len(all_filed)
    return (
        f"{record['message']}  ->  {'; '.join(wrong + [f'more: {value}' for value in left])}"
        if wrong or left
        else ""
    )


def main() -> None:
    """Print the figures of each language."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.facts_with_times", description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print what was missed or filed wrongly")
    options = parser.parse_args()
    for path in sorted(FOLDER.glob("*.jsonl")):
        counts: Counter[str] = Counter()
        for line in path.read_text(encoding="utf-8").splitlines():
            wrong = judge(json.loads(line), counts)
            if options.misses and wrong:
                print(f"  {wrong}")
        print(
            f"{path.stem}: of {counts['stated']} facts {counts['found']} filed, {counts['right']} right\n"
            f"  of {counts['timed']} facts with times {counts['timed right']} right\n"
            f"  of {counts['timed filed']} values that say a time {counts['timed right']} right\n"
            f"  {counts['over shown as so']} over and filed as so, {counts['untold']} filed of what states nothing"
        )


if __name__ == "__main__":
    main()
