"""Time that a user's first turns wait after a restart, beside later ones.

`python -m benchmarks.first_turn [--units 1200 50000] [--starts 3]`

The service is started over data that another process has stored and indexed; everything is embedded, and the model
is the offline one. Each user's first turn is asked as soon as the service listens, each of a start of its own.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.processes import child, environment_without_settings, free_port, wait_for
from benchmarks.recall import lines_of
from benchmarks.turn_messages import Messages
from services.bootstrap import open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import load_settings
from services.transfer.importer import Importer

_SERVE = "from api.cli.main import app; app()"
_LATER = 10


async def _fill(folder: Path, sizes: list[int], messages: Messages) -> None:
    settings = load_settings(data_dir=folder / "data", memory_summaries=False, memory_topics=False)
    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            importer = Importer(settings, services.database, services.jobs)
            for units in sizes:
                await importer.run(DEFAULT_TENANT, lines_of(str(units), messages.past("en", 1, units // 2)))
            await services.memory.indexing.index_waiting()


def _turn(http: httpx.Client, user: str, session: str, message: str) -> tuple[float, dict[str, Any]]:
    begun = time.perf_counter()
    answer = http.post("/api/v1/chat", json={"user_id": user, "session_id": session, "message": message})
    answer.raise_for_status()
    return time.perf_counter() - begun, answer.json()


def measure(folder: Path, units: int, messages: Messages) -> list[tuple[float, dict[str, Any]]]:
    """Start the service, and return the seconds and the answer of a user's first turn and of those after it."""
    port = free_port()
    environment = {
        **environment_without_settings(),
        "ANAMNESIS_DATA_DIR": str(folder / "data"),
        "ANAMNESIS_LOG_LEVEL": "warning",
    }
    with child(["-c", _SERVE, "serve", "--port", str(port)], environment=environment, folder=folder) as process:
        wait_for(process, f"http://127.0.0.1:{port}/healthz")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            asked = messages.some("en", "question", 1 + _LATER)
            return [_turn(http, str(units), f"asks-{number}", text) for number, text in enumerate(asked)]


def main() -> None:
    """Fill, measure, and print a line for each start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, nargs="+", default=[1_200, 50_000])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--messages", type=Path, metavar="FOLDER", help="of dialogues; without, they are made up")
    options = parser.parse_args()
    messages = Messages(options.messages)
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        asyncio.run(_fill(folder, options.units, messages))
        for units in options.units:
            for number in range(options.starts):
                (first, answer), *later = measure(folder, units, messages)
                usual = statistics.median(seconds for seconds, _ in later)
                seconds = " ".join(f"{each:.2f}" for each, _ in later)
                print(
                    f"{units} units, start {number + 1}: first {first:.2f} s, +{first - usual:.2f} s over later "
                    f"ones ({seconds}); memory {answer['timings'].get('memory_loading_ms', 0):.0f} ms, "
                    f"degraded {answer['degraded']}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
