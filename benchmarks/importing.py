"""Cost of an import: turns a second over HTTP, the import repeated, the export, and the first turn behind it.

`python -m benchmarks.importing [--turns 10000] [--sessions 1] [--seed N] [--no-summaries]`

The service is a process with everything embedded; the dialogue is generated. Summaries are made behind the
import, by a stand-in for the language model. The CPU of a message counts the service, PostgreSQL and Milvus until
all of it is indexed.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.conversation_rig import USER, Rig, rig
from benchmarks.dialogue import answer_to, message_of
from benchmarks.processes import weigh

_BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
_CHUNK = 64 * 1024
_INDEXED_S, _LOOK_S = 540, 0.5
_WAITING = "SELECT count(*) FROM episodes WHERE indexed_at IS NULL"


def dialogue(turns: int, sessions: int, seed: int) -> Iterator[str]:
    """The lines of a dialogue, two for each turn, five minutes apart; the sessions take turns about."""
    for turn in range(1, turns + 1):
        asked = message_of(seed, turn)
        at = _BEGUN + timedelta(minutes=5 * turn)
        for role, content, second in (("user", asked, 0), ("assistant", answer_to(asked), 20)):
            line = {
                "user_id": USER,
                "session_id": f"s-{turn % sessions}",
                "role": role,
                "content": content,
                "created_at": (at + timedelta(seconds=second)).isoformat(),
            }
            yield json.dumps(line, ensure_ascii=False) + "\n"


def _send(service: Rig, file: Path) -> tuple[float, dict[str, Any]]:
    begun = time.perf_counter()
    with file.open("rb") as lines:
        chunks = iter(lambda: lines.read(_CHUNK), b"")
        headers = {"Content-Type": "application/x-ndjson"}
        answer = service.http.post(
            "/api/v1/import", content=chunks, headers=headers, timeout=httpx.Timeout(600)
        ).raise_for_status()
    found: dict[str, Any] = answer.json()
    return time.perf_counter() - begun, found


def _cpu_s(service: Rig) -> float:
    weight = weigh(service.pid)
    return weight.cpu_s + weight.postgres_cpu_s


def _await_index(service: Rig) -> None:
    end = time.monotonic() + _INDEXED_S
    while (service.database.execute(_WAITING).fetchone() or (0,))[0] and time.monotonic() < end:
        time.sleep(_LOOK_S)


def _take(service: Rig) -> tuple[float, int]:
    begun = time.perf_counter()
    size = 0
    with service.http.stream("GET", f"/api/v1/users/{USER}/export") as answer:
        for chunk in answer.iter_bytes():
            size += len(chunk)
    return time.perf_counter() - begun, size


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="What an import costs.")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-summaries", action="store_true", help="make none behind the import")
    given = parser.parse_args()
    summaries = "off" if given.no_summaries else "on"
    table = Table("what", "seconds", "turns/s", "", title=f"{given.turns} turns in {given.sessions} sessions")
    with tempfile.TemporaryDirectory() as folder, rig(memory_summaries=summaries) as service:
        file = Path(folder) / "dialogue.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(dialogue(given.turns, given.sessions, given.seed))
        before = _cpu_s(service)
        for what in ("import", "the same again"):
            seconds, report = _send(service, file)
            told = f"{report['imported']} imported, {report['skipped']} skipped, {report['refused']} refused"
            table.add_row(what, f"{seconds:.1f}", f"{given.turns / seconds:.0f}", told)
            if what == "import":
                _await_index(service)
                cpu_ms = 1000 * (_cpu_s(service) - before) / (2 * given.turns)
                table.add_row("CPU of a message, ms", f"{cpu_ms:.2f}", "", "")
                first = service.first_token_ms("s-0", "Where were we?")
        seconds, size = _take(service)
        table.add_row("export", f"{seconds:.1f}", f"{given.turns / seconds:.0f}", f"{size / 1e6:.1f} MB")
        table.add_row("first token behind the import", f"{first / 1000:.3f}", "", "")
    Console().print(table)


if __name__ == "__main__":
    main()
