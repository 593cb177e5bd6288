"""The figures of the benchmark, as tables and as plain values."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.load_client import Samples
from benchmarks.remembering import Remembered
from benchmarks.stand_in_llm import CHARACTERS, FIRST_TOKEN_S, Mode

_MEASURED_UNITS = 600


@dataclass
class Cell:
    """All rounds of one server at one mode and concurrency."""

    first_ms: list[float] = field(default_factory=list)
    """From the request to the first token, the model's own time not counted."""
    full_ms: list[float] = field(default_factory=list)
    wire_bytes: list[int] = field(default_factory=list)
    cpu_s: float = 0.0
    postgres_cpu_s: float = 0.0
    elapsed_s: float = 0.0
    without_recall: int = 0
    cpu_ms_by_round: list[float] = field(default_factory=list)

    def add(self, mode: Mode, samples: Samples, cpu_s: float, postgres_cpu_s: float) -> None:
        """Add a round."""
        of_the_model = FIRST_TOKEN_S * 1000 if mode == "paced" else 0.0
        self.first_ms += [first - of_the_model for first in samples.first_ms]
        self.full_ms += samples.full_ms
        self.wire_bytes += samples.wire_bytes
        self.cpu_s += cpu_s
        self.postgres_cpu_s += postgres_cpu_s
        self.elapsed_s += samples.elapsed_s
        self.without_recall += samples.without_recall
        self.cpu_ms_by_round.append(round(cpu_s * 1000 / len(samples.full_ms), 3))

    def figures(self) -> dict[str, float]:
        """What is reported: milliseconds, bytes and turns a second."""
        turns = len(self.full_ms)
        return {
            "added_first_ms": statistics.median(self.first_ms),
            "added_first_p95_ms": p95(self.first_ms),
            "full_ms": statistics.median(self.full_ms),
            "full_p95_ms": p95(self.full_ms),
            "cpu_ms": self.cpu_s * 1000 / turns,
            "postgres_cpu_ms": self.postgres_cpu_s * 1000 / turns,
            "wire_bytes": statistics.median(self.wire_bytes),
            "turns_per_s": turns / self.elapsed_s,
            "turns": turns,
        }


@dataclass(frozen=True)
class Reach:
    """A stretch of long conversations: turns `first` to `last`."""

    first: int
    last: int
    first_ms: float
    full_ms: float
    cpu_ms: float
    """Medians for the times, mean for the CPU."""


Cells = dict[tuple[Mode, int], dict[str, Cell]]
"""By mode and concurrency, then by server: `floor` and `ours`."""


@dataclass
class Results:
    """Everything that was measured."""

    api: str
    cells: Cells = field(default_factory=dict)
    memory_mb: dict[str, dict[str, float]] = field(default_factory=dict)
    """By server and mode: the process alone (`api`) and its whole tree (`tree`), after the load."""
    conversation: list[Reach] = field(default_factory=list)
    remembered: list[Remembered] = field(default_factory=list)
    without_recall: int = 0
    """Turns of users who remember that were answered without recall."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "api": self.api,
            "load": [
                {"mode": mode, "concurrency": concurrency, "server": server, **cell.figures()}
                | {"cpu_ms_by_round": cell.cpu_ms_by_round}
                for (mode, concurrency), servers in self.cells.items()
                for server, cell in servers.items()
            ],
            "memory_mb": self.memory_mb,
            "conversation": [vars(reach) for reach in self.conversation],
            "remembered": [vars(each) | {"more_ms": each.more_ms} for each in self.remembered],
            "aims": [{"aim": aim, "figure": figure, "met": met} for aim, figure, met in self.aims()],
        }

    def aims(self) -> list[tuple[str, str, bool]]:
        """Each aim, what was measured, and whether it is met."""
        figures = {
            place: {name: cell.figures() for name, cell in pair.items()} for place, pair in self.cells.items()
        }
        burst, paced_1, paced_20 = figures["burst", 20], figures["paced", 1], figures["paced", 20]
        cpu = burst["ours"]["cpu_ms"] / burst["floor"]["cpu_ms"]
        more_at_1 = paced_1["ours"]["added_first_ms"] - paced_1["floor"]["added_first_ms"]
        more_at_20 = paced_20["ours"]["added_first_ms"] - paced_20["floor"]["added_first_ms"]
        wire = max(pair["ours"]["wire_bytes"] for pair in figures.values())
        aims = [
            ("CPU of a turn, burst at 20, to the floor's: at most 0.50", f"{cpu:.2f}", cpu <= 0.5),
            (
                "first token, paced at 1: at most 3 ms after the floor's",
                f"{more_at_1:+.1f} ms",
                more_at_1 <= 3,
            ),
            ("first token, paced at 20: no later than the floor's", f"{more_at_20:+.1f} ms", more_at_20 <= 0),
            (f"wire for {CHARACTERS} characters: at most 10 KB", f"{wire / 1000:.1f} KB", wire <= 10_000),
        ]
        aims += self._aims_of_memory()
        if self.conversation:
            growth = self.conversation[-1].full_ms / self.conversation[0].full_ms
            aims.append(("turn 200 to turn 2: at most 1.20", f"{growth:.2f}", growth <= 1.2))
        return aims

    def _aims_of_memory(self) -> list[tuple[str, str, bool]]:
        without = self.without_recall + sum(pair["ours"].without_recall for pair in self.cells.values())
        aims = [("turns without recall: 0", str(without), without == 0)]
        turns = sum(each.turns for each in self.remembered if each.units)
        evident = sum(each.with_evidence for each in self.remembered if each.units)
        if turns:
            aims.append(("prompts with the evidence: all", f"{evident} of {turns}", evident == turns))
        for each in self.remembered:
            most = {1: 10.0, 20: 25.0}.get(each.concurrency)
            if each.mode == "paced" and each.units == _MEASURED_UNITS and most:
                aim = (
                    f"first token of a question about the past, paced at {each.concurrency}: at most {most:.0f} ms"
                )
                aims.append((f"{aim} after the floor's", f"{each.more_ms:+.1f} ms", each.more_ms <= most))
        return aims


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[min(len(values) - 1, round(len(values) * 0.95))]


_COLUMNS: list[tuple[str, str, Callable[[float], str]]] = [
    ("turns", "turns", "{:.0f}".format),
    ("added_first_ms", "first +ms", "{:.1f}".format),
    ("added_first_p95_ms", "p95", "{:.1f}".format),
    ("full_ms", "full ms", "{:.1f}".format),
    ("full_p95_ms", "p95", "{:.1f}".format),
    ("cpu_ms", "CPU ms", "{:.2f}".format),
    ("postgres_cpu_ms", "PG ms", "{:.2f}".format),
    ("wire_bytes", "wire B", "{:.0f}".format),
    ("turns_per_s", "turns/s", "{:.1f}".format),
]


def show(results: Results) -> None:
    """Print the tables."""
    console = Console(width=110)
    table = Table(title=f"One streamed turn ({results.api}); ratios are ours to the floor")
    table.add_column("load")
    table.add_column("server")
    for _, heading, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    for (mode, concurrency), servers in results.cells.items():
        figures = {name: servers[name].figures() for name in ("floor", "ours")}
        for name, row in figures.items():
            table.add_row(f"{mode} {concurrency}", name, *(form(row[key]) for key, _, form in _COLUMNS))
        ratios = [_ratio(figures["ours"][key], figures["floor"][key]) for key, _, _ in _COLUMNS]
        table.add_row("", "ratio", *ratios, style="bold", end_section=True)
    console.print(table)
    memory = Table(title="Resident memory after the load, MB")
    for heading in ("mode", "server", "process", "tree"):
        memory.add_column(heading)
    for place, megabytes in results.memory_mb.items():
        memory.add_row(*place.split(), f"{megabytes['api']:.0f}", f"{megabytes['tree']:.0f}")
    console.print(memory)
    if results.conversation:
        _show_conversation(console, results.conversation)
    if results.remembered:
        _show_remembered(console, results.remembered)
    aims = Table(title="Aims")
    for heading in ("aim", "figure", ""):
        aims.add_column(heading)
    for aim, figure, met in results.aims():
        aims.add_row(aim, figure, "met" if met else "MISSED")
    console.print(aims)


def _show_remembered(console: Console, found: Sequence[Remembered]) -> None:
    table = Table(title="Questions about the past, each the first message of a conversation")
    for heading in ("load", "units", "turns", "floor first +ms", "first +ms", "p95", "more", "CPU", "evidence"):
        table.add_column(heading, justify="right")
    for each in found:
        evidence = f"{each.with_evidence}" if each.units else "-"
        times = (f"{each.floor_first_ms:.1f}", f"{each.first_ms:.1f}", f"{each.first_p95_ms:.1f}")
        more = (f"{each.more_ms:+.1f}", f"{each.cpu_ratio:.2f}", evidence)
        load = f"{each.mode} {each.concurrency}"
        table.add_row(load, f"{each.units:,}", str(each.turns), *times, *more)
    console.print(table)


def _show_conversation(console: Console, reaches: Sequence[Reach]) -> None:
    table = Table(title="Long conversations, burst, one turn at a time")
    for heading in ("turns", "first ms", "full ms", "CPU ms", "full, to the first"):
        table.add_column(heading, justify="right")
    for reach in reaches:
        times = (f"{reach.first_ms:.1f}", f"{reach.full_ms:.1f}", f"{reach.cpu_ms:.2f}")
        table.add_row(f"{reach.first}-{reach.last}", *times, _ratio(reach.full_ms, reaches[0].full_ms))
    console.print(table)


def _ratio(value: float, to: float) -> str:
    return f"{value / to:.2f}" if to > 0 else "-"
