"""Many streams open at once, in the service and in the floor: errors, throughput, first tokens, memory.

`python -m benchmarks.load [--streams 500] [--rounds 2] [--pace slow|paced|burst] [--api chat] [--json FILE]`

With the pace `slow` the stand-in model takes about 16 s for an answer, so that every stream is open while the
others are; with the others the servers are the slower ones, and throughput is theirs. Each stream is read
event by event. Exit code 1 when one was not complete.
"""

import argparse
import json
import resource
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.load_client import Load, Samples
from benchmarks.processes import child
from benchmarks.rig import Server, floor, fresh_lanes, interrupt_once, service, stand_in
from benchmarks.stand_in_llm import ANSWER, TOKENS, Api

_WARM_UP = 20
_LOOK_S = 0.1
_FILES_BESIDES = 500
"""Open files of a server that are not its streams'; each stream has one to the client and one to the model."""


@dataclass
class Loaded:
    """All rounds of one server."""

    first_ms: list[float] = field(default_factory=list)
    elapsed_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    most_open: int = 0
    kb_per_stream: float = 0.0
    """Resident memory of the first round; the next ones use again what that left behind."""

    def figures(self) -> dict[str, float]:
        """Return the reported figures, medians over all rounds."""
        completed = len(self.first_ms) / len(self.elapsed_s)
        elapsed_s = statistics.median(self.elapsed_s)
        return {
            "errors": len(self.failures),
            "completed": len(self.first_ms),
            "most_open": self.most_open,
            "wall_s": elapsed_s,
            "streams_per_s": completed / elapsed_s,
            "tokens_per_s": completed * TOKENS / elapsed_s,
            "first_p50_ms": percentile(self.first_ms, 0.50),
            "first_p99_ms": percentile(self.first_ms, 0.99),
            "kb_per_stream": self.kb_per_stream,
        }


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which that part of the values lies; NaN where there are none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def allow_files(streams: int) -> None:
    """Let this process and its children open as many files as the load needs.

    Raises:
        SystemExit: the machine's limit is lower.
    """
    needed = 2 * streams + _FILES_BESIDES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise SystemExit(f"{streams} streams need {needed} open files; the limit is {hard} (ulimit -Hn)")
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def load_once(client: "subprocess.Popen[str]", server: Server, streams: int) -> tuple[Samples, float]:
    """Open this many streams at once; return what the client saw, and how much the server grew, in KB."""
    if client.stdin is None or client.stdout is None:
        raise AssertionError("the client is piped")
    asked = server.load(fresh_lanes(streams), streams)
    process = psutil.Process(server.pid)
    before = most = process.memory_info().rss
    client.stdin.write(json.dumps(asdict(Load(**{**asdict(asked), "answer": ANSWER}))) + "\n")
    client.stdin.flush()
    while not select.select([client.stdout], [], [], _LOOK_S)[0]:
        most = max(most, process.memory_info().rss)
    line = client.stdout.readline()
    if not line:
        raise RuntimeError("the load client ended")
    return Samples(**json.loads(line)), (most - before) / 1024


def run(streams: int, rounds: int, pace: str, api: Api) -> dict[str, Loaded]:
    """Load floor and service by turns, both up all the time, in every round in the other order."""
    with stand_in() as llm_port, child(["-m", "benchmarks.load_client"], piped=True) as client:
        base_url = f"http://127.0.0.1:{llm_port}/{pace}/v1"
        with floor(base_url, api) as bare, service(base_url, api) as ours:
            servers = [bare, ours]
            results = {server.name: Loaded() for server in servers}
            for server in servers:
                load_once(client, server, _WARM_UP)
            for number in range(rounds):
                for server in servers if number % 2 == 0 else reversed(servers):
                    samples, grown_kb = load_once(client, server, streams)
                    one = results[server.name]
                    one.first_ms += samples.first_ms
                    one.elapsed_s.append(samples.elapsed_s)
                    one.failures += samples.failures
                    one.most_open = max(one.most_open, samples.most_open)
                    if number == 0:
                        one.kb_per_stream = grown_kb / streams
                    time.sleep(1)
    return results


_ROWS: list[tuple[str, str, Callable[[float], str]]] = [
    ("errors", "errors", "{:.0f}".format),
    ("completed", "completed streams, all rounds", "{:.0f}".format),
    ("most_open", "open at the same time", "{:.0f}".format),
    ("wall_s", "wall time of a round, s", "{:.1f}".format),
    ("streams_per_s", "streams/s", "{:.1f}".format),
    ("tokens_per_s", "tokens/s", "{:.0f}".format),
    ("first_p50_ms", "first token p50, ms", "{:.0f}".format),
    ("first_p99_ms", "first token p99, ms", "{:.0f}".format),
    ("kb_per_stream", "resident memory per stream, KB", "{:.0f}".format),
]


def show(results: dict[str, Loaded], title: str) -> None:
    """Print the table."""
    figures = {name: one.figures() for name, one in results.items()}
    table = Table(title=title)
    table.add_column("")
    for heading in ("floor", "ours", "ours to floor"):
        table.add_column(heading, justify="right")
    for key, name, form in _ROWS:
        floors, ours = figures["floor"][key], figures["ours"][key]
        table.add_row(name, form(floors), form(ours), f"{ours / floors:.2f}" if floors > 0 else "-")
    console = Console(width=110)
    console.print(table)
    for name, one in results.items():
        for failure in one.failures[:3]:
            console.print(f"{name}: {failure}", markup=False)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--streams", type=int, default=500, help="how many at once")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pace", choices=("slow", "paced", "burst"), default="slow", help="the model's")
    parser.add_argument("--api", choices=get_args(Api), default="responses", help="the model's API")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    allow_files(options.streams)
    try:
        results = run(options.streams, options.rounds, options.pace, options.api)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    show(results, f"{options.streams} streams at once ({options.pace}, {options.api})")
    if options.json:
        figures: dict[str, Any] = {name: one.figures() for name, one in results.items()}
        options.json.write_text(json.dumps({"streams": options.streams, **figures}, indent=1) + "\n")
    sys.exit(1 if any(one.failures for one in results.values()) else 0)


if __name__ == "__main__":
    main()
