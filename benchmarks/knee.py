"""Behaviour around saturation: throughput and latencies at half of it, at it and beyond, and how soon it is over.

`python -m benchmarks.knee [--seconds 15] [--api chat] [--json FILE]`

Saturation is the throughput of 50 clients who each send the next turn after the last answer, the model answering
at once. Then turns begin at a fixed rate, whether or not earlier ones have ended: at 0.5, 1.0 and 1.5 of that.
Recovery is the time from the last request of the overload until a turn is answered as soon as at half the load.
It takes five times `--seconds` and about a minute more.
"""

import argparse
import json
import signal
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from benchmarks.load import allow_files, percentile
from benchmarks.load_client import Samples
from benchmarks.processes import child
from benchmarks.rig import Client, Server, fresh_lanes, interrupt_once, service, stand_in
from benchmarks.stand_in_llm import Api

SHARES = (0.5, 1.0, 1.5)
_AT_ONCE = 50
_WARM_UP = 100
_SOON = 2.0
"""Times the median of half the load that a first token may take after the overload is over."""
_LONGEST_RECOVERY_S = 60.0
_MOST_STREAMS = 2_000


@dataclass(frozen=True)
class Step:
    """A stretch at one rate.

    Attributes:
        share: Of the saturation.
        offered: Turns that began in a second.
        throughput: Turns that were answered in a second, until the last one was.
        refused: Turns that were answered with 503.
        first_ms: Median of the time to the first token; the 99th percentile after it.
    """

    share: float
    offered: float
    throughput: float
    turns: int
    refused: int
    without_recall: int
    first_ms: float
    first_p99_ms: float
    full_p99_ms: float


@dataclass(frozen=True)
class Knee:
    """Result of a measurement."""

    saturation: float
    """Turns a second."""
    steps: Sequence[Step]
    recovery_s: float


def measure_knee(server: Server, client: Client, seconds: float) -> Knee:
    """Find the saturation, load the server around it, and wait until it has recovered."""
    client.measure(server, server.load(fresh_lanes(_WARM_UP), _AT_ONCE))
    trial = client.measure(server, server.load(fresh_lanes(4 * _AT_ONCE), _AT_ONCE))[0]
    turns = max(4 * _AT_ONCE, round(seconds * len(trial.full_ms) / trial.elapsed_s))
    samples = client.measure(server, server.load(fresh_lanes(turns), _AT_ONCE))[0]
    saturation = len(samples.full_ms) / samples.elapsed_s
    steps: list[Step] = []
    drained_s = 0.0
    for share in SHARES:
        rate = share * saturation
        lanes = fresh_lanes(round(rate * seconds))
        samples = client.measure(server, replace(server.load(lanes, 0), rate=rate))[0]
        drained_s = max(0.0, samples.elapsed_s - len(lanes) / rate)
        steps.append(_step(share, rate, samples))
    begun = time.monotonic()
    while time.monotonic() - begun < _LONGEST_RECOVERY_S:
        probe = client.measure(server, server.load(fresh_lanes(1), 1))[0]
        if probe.first_ms[0] <= _SOON * steps[0].first_ms:
            break
    return Knee(saturation, steps, drained_s + time.monotonic() - begun)


def _step(share: float, rate: float, samples: Samples) -> Step:
    return Step(
        share=share,
        offered=rate,
        throughput=len(samples.full_ms) / samples.elapsed_s,
        turns=len(samples.full_ms),
        refused=samples.refused,
        without_recall=samples.without_recall,
        first_ms=statistics.median(samples.first_ms),
        first_p99_ms=percentile(samples.first_ms, 0.99),
        full_p99_ms=percentile(samples.full_ms, 0.99),
    )


def run(seconds: float, api: Api) -> Knee:
    """Measure the service, the model answering at once."""
    with (
        stand_in() as llm_port,
        child(["-m", "benchmarks.load_client"], piped=True) as process,
        service(f"http://127.0.0.1:{llm_port}/burst/v1", api) as server,
    ):
        return measure_knee(server, Client(process), seconds)


def show(knee: Knee) -> None:
    """Print the table."""
    table = Table(title=f"Around saturation, {knee.saturation:.1f} turns/s")
    headings = (
        "load",
        "offered/s",
        "answered/s",
        "turns",
        "refused",
        "without recall",
        "first ms",
        "p99",
        "full p99",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for each in knee.steps:
        rates = (f"{each.offered:.1f}", f"{each.throughput:.1f}")
        counts = (str(each.turns), str(each.refused), str(each.without_recall))
        times = (f"{each.first_ms:.0f}", f"{each.first_p99_ms:.0f}", f"{each.full_p99_ms:.0f}")
        table.add_row(f"{each.share:.1f}", *rates, *counts, *times)
    console = Console(width=110)
    console.print(table)
    console.print(f"Recovered {knee.recovery_s:.1f} s after the last request of the overload.")


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knee", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each step")
    parser.add_argument("--api", choices=get_args(Api), default="responses", help="the model's API")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    allow_files(_MOST_STREAMS)
    try:
        knee = run(options.seconds, options.api)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    show(knee)
    if options.json:
        options.json.write_text(json.dumps(asdict(knee), indent=1) + "\n")


if __name__ == "__main__":
    main()
