"""Cost of a start: seconds until the service is ready, CPU, and memory at rest.

`python -m benchmarks.startup [--starts 3] [--rest 20] [--model]`

The first start makes the embedded stores; the figures are of the starts after it. Memory is the proportional
set size (PSS) of the whole process tree: pages that several processes share count once in all.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.processes import child, environment_without_settings, free_port, wait_for, weigh

_SERVE = "from api.cli.main import app; app()"


@dataclass(frozen=True)
class Start:
    """One start of the service."""

    ready_s: float
    """Wall time until `/readyz` answers."""
    cpu_s: float
    """CPU of the service and its embedded Milvus until then, PostgreSQL apart."""
    rest_cpu_s: float
    """CPU after the rest."""
    pss_mb: dict[str, float]
    """Memory after the rest: of the service, Milvus and PostgreSQL."""


def measure(folder: Path, rest_s: float, *, model: bool) -> Start:
    """Start the service over a data folder, wait until it is ready, let it rest, and stop it."""
    port = free_port()
    environment = {
        **environment_without_settings(),
        "ANAMNESIS_DATA_DIR": str(folder / "data"),
        "ANAMNESIS_LOG_LEVEL": "warning",
    }
    if model:
        environment |= {
            "ANAMNESIS_LLM_MODEL": "stand-in",
            "ANAMNESIS_LLM_BASE_URL": "http://127.0.0.1:9",
            "ANAMNESIS_LLM_API_KEY": "x",
        }
    begun = time.perf_counter()
    with child(["-c", _SERVE, "serve", "--port", str(port)], environment=environment, folder=folder) as process:
        wait_for(process, f"http://127.0.0.1:{port}/healthz")
        ready_s, cpu_s = time.perf_counter() - begun, weigh(process.pid).cpu_s
        time.sleep(rest_s)
        return Start(ready_s, cpu_s, weigh(process.pid).cpu_s, memory_of(process.pid))


def memory_of(pid: int) -> dict[str, float]:
    """PSS in MB of a process and its descendants, by what they are."""
    top = psutil.Process(pid)
    found: Counter[str] = Counter(service=0)
    for process in (top, *top.children(recursive=True)):
        command = " ".join(process.cmdline())
        kind = "service" if process == top else "milvus" if "milvus" in command else "postgres"
        found[kind] += process.memory_full_info().pss
    return {kind: size / 2**20 for kind, size in found.items()}


def main() -> None:
    """Measure, and print a line for each start and their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=3, help="Starts to measure, after the first.")
    parser.add_argument("--rest", type=float, default=20, help="Seconds of rest before memory is read.")
    parser.add_argument("--model", action="store_true", help="With the settings of a model that nobody asks.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        starts = [
            measure(folder, options.rest if number else 0, model=options.model)
            for number in range(options.starts + 1)
        ]
    for number, start in enumerate(starts, 1):
        parts = ", ".join(f"{kind} {size:.0f}" for kind, size in start.pss_mb.items())
        total = sum(start.pss_mb.values())
        print(
            f"start {number}: ready {start.ready_s:.2f} s, CPU {start.cpu_s:.2f} s (after the rest "
            f"{start.rest_cpu_s:.2f} s), PSS {total:.0f} MB ({parts})"
        )
    later = starts[1:]
    print(
        f"median of {len(later)}: ready {statistics.median(s.ready_s for s in later):.2f} s, "
        f"PSS {statistics.median(sum(s.pss_mb.values()) for s in later):.0f} MB"
    )


if __name__ == "__main__":
    main()
