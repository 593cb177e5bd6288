"""Gain and cost of `anamnesis serve --workers N` on embedded stores.

`python -m benchmarks.workers [--workers 1,2] [--rounds 2] [--turns 300] [--concurrency 20]`

Everything on this machine: the service with all its stores and its background jobs, the stand-in for the model
(answering at once) and the load client. The numbers of workers take turns. Memory is the proportional set size
(PSS) of the whole tree of processes, at rest and after the load; a worker's own is what it shares with none.
"""

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.load import percentile
from benchmarks.load_client import Load, Samples
from benchmarks.processes import child, environment_without_settings, free_port, wait_for
from benchmarks.rig import fresh_lanes

_SERVE = "from api.cli.main import app; app()"
_WARM_UP_TURNS = 80
_REST_S = 5.0


def measure(workers: int, turns: int, concurrency: int) -> tuple[str, ...]:
    """Start a service over new data, load it, and return a row of the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="anamnesis-workers-")))
        llm = stack.enter_context(child(["-m", "benchmarks.stand_in_llm"], piped=True))
        client = stack.enter_context(child(["-m", "benchmarks.load_client"], piped=True))
        if llm.stdout is None or client.stdin is None or client.stdout is None:
            raise AssertionError("both are piped")
        environment = {
            **environment_without_settings(),
            "ANAMNESIS_DATA_DIR": str(folder / "data"),
            "ANAMNESIS_LLM_MODEL": "stand-in",
            "ANAMNESIS_LLM_BASE_URL": f"http://127.0.0.1:{int(llm.stdout.readline())}/burst/v1",
            "ANAMNESIS_LLM_API_KEY": "x",
            "ANAMNESIS_LOG_LEVEL": "error",
        }
        port = free_port()
        command = ["-c", _SERVE, "serve", "--port", str(port), "--workers", str(workers)]
        service = stack.enter_context(child(command, environment=environment, folder=folder))
        wait_for(service, f"http://127.0.0.1:{port}/healthz")
        time.sleep(_REST_S * workers)  # the others start after the first
        at_rest, own = _memory(service.pid)
        for count in (_WARM_UP_TURNS * workers, turns):
            load = Load(
                port, "/api/v1/chat/stream", fresh_lanes(count), concurrency, "event: token", "event: done"
            )
            client.stdin.write(json.dumps(asdict(load)) + "\n")
            client.stdin.flush()
            samples = Samples(**json.loads(client.stdout.readline()))
            if samples.failures:
                raise RuntimeError(f"{len(samples.failures)} turns failed; the first: {samples.failures[0]}")
        first = [f"{percentile(samples.first_ms, part):.0f}" for part in (0.5, 0.99)]
        return (str(workers), f"{turns / samples.elapsed_s:.1f}", *first, at_rest, own, *_memory(service.pid))


def _memory(pid: int) -> tuple[str, str]:
    """Return the megabytes of a tree of processes, and what its last child has for itself."""
    root = psutil.Process(pid)
    total = sum(each.memory_full_info().pss for each in [root, *root.children(recursive=True)])
    workers = [each for each in root.children() if each.cmdline() == root.cmdline()]
    newest = max([*workers, root], key=lambda each: each.create_time())
    return f"{total / 2**20:.0f}", f"{newest.memory_full_info().uss / 2**20:.0f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--workers", default="1,2", help="numbers of workers")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--turns", type=int, default=300, help="of each run")
    parser.add_argument("--concurrency", type=int, default=20)
    options = parser.parse_args()
    table = Table(title="Workers on embedded stores")
    columns = ("workers", "turns/s", "first ms, p50", "p99", "at rest, MB", "its own", "after, MB", "its own")
    for column in columns:
        table.add_column(column, justify="right")
    for _ in range(options.rounds):
        for workers in options.workers.split(","):
            table.add_row(*measure(int(workers), options.turns, options.concurrency))
    Console().print(table)


if __name__ == "__main__":
    main()
