"""How long recall takes, in English and Chinese, for users with 20, 600, 10,000 and more units.

`python -m benchmarks.recall [--units 20 600 10000] [--searches 100] [--messages FOLDER] [--milvus URL]`

Every question is another one, and is encoded; what was said is read from a folder of dialogues or made up.
Everything is embedded and real, with the event loop and the garbage collection of `anamnesis serve`; without
`--milvus` the index is the embedded one. A recall is that of a turn whose opening statement has read the user's
memory generation. `cold` is the first one, which reads the working set.
"""

import argparse
import asyncio
import itertools
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.report import p95
from benchmarks.turn_messages import Language, Messages
from services.bootstrap import Services, open_services
from services.conversations.turn import TurnRequest
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.heap import calm_garbage_collection
from services.platform.settings import load_settings
from services.transfer.importer import Importer
from state.turn import TurnInput

_BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
_TURNS_OF_A_SESSION = 20
_AT_ONCE = 20
_WARM_UP = 20


async def lines_of(user: str, said: Iterable[str]) -> AsyncIterator[bytes]:
    """Yield the lines of an import of messages, each with an answer."""
    for turn, text in enumerate(said):
        at = _BEGUN + timedelta(minutes=7 * turn)
        for role, content, second in (("user", text, 0), ("assistant", f"{text[:80]} — {text[-80:]}", 20)):
            line = {
                "user_id": user,
                "session_id": f"s-{turn // _TURNS_OF_A_SESSION}",
                "role": role,
                "content": content,
                "created_at": (at + timedelta(seconds=second)).isoformat(),
            }
            yield orjson.dumps(line) + b"\n"


async def _measure(
    services: Services, user: str, language: Language, messages: Messages, searches: int
) -> dict[str, float]:
    said = TurnInput(user_id=user, session_id="asks", message="What did we talk about?")
    opened = await services.turns.open(TurnRequest(DEFAULT_TENANT, said))

    async def recall(*, cold: bool = False) -> float:
        asked = TurnInput(message=messages.some(language, "question", 1)[0])
        turn = replace(opened, input=asked, now=datetime.now(UTC))
        begun = time.perf_counter()
        found = await services.memory.recall.for_turn(turn)
        if found.degraded and not cold:  # the first goes on without an index that has still to be started
            raise RuntimeError(f"not everything was searched: {found.degraded}")
        return (time.perf_counter() - begun) * 1000

    cold = await recall(cold=True)
    await services.memory.working_sets.settled()
    for _ in range(_WARM_UP):
        await recall()
    calm_garbage_collection()
    cpu = time.process_time()
    alone = sorted([await recall() for _ in range(searches)])
    cpu = (time.process_time() - cpu) * 1000 / searches
    together: list[float] = []
    for _ in range(max(1, searches // _AT_ONCE)):
        together += await asyncio.gather(*(recall() for _ in range(_AT_ONCE)))
    return {"cold": cold, "p50": alone[len(alone) // 2], "p95": p95(alone), "cpu": cpu, "at_20": p95(together)}


async def run(sizes: list[int], searches: int, messages: Messages, milvus: str | None) -> list[dict[str, Any]]:
    """Fill the store with users of each size and language, one after the other, and measure."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # noqa: ASYNC240 — for the account that the embedded PostgreSQL runs under
        settings = load_settings(data_dir=folder, milvus_uri=milvus, memory_summaries=False, memory_topics=False)
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                importer = Importer(settings, services.database, services.jobs)
                for units, language in itertools.product(sorted(sizes), get_args(Language)):
                    user = f"{language}-{units}"
                    await importer.run(DEFAULT_TENANT, lines_of(user, messages.past(language, 1, units // 2)))
                    begun = time.perf_counter()
                    await services.memory.indexing.index_waiting()
                    indexing = time.perf_counter() - begun
                    figures = await _measure(services, user, language, messages, searches)
                    rows.append({"language": language, "units": units, "per_second": units / indexing, **figures})
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, nargs="+", default=[20, 600, 10_000])
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--messages", type=Path, metavar="FOLDER", help="of dialogues; without, they are made up")
    parser.add_argument("--milvus")
    arguments = parser.parse_args()
    rows = uvloop.run(run(arguments.units, arguments.searches, Messages(arguments.messages), arguments.milvus))
    table = Table(title=f"Recall of a turn: {arguments.searches} of each user, milliseconds")
    for column in ("", "units", "cold", "p50", "p95", "p95, 20 at once", "CPU", "indexed a second"):
        table.add_column(column, justify="right")
    for row in rows:
        times = (f"{row[name]:.1f}" for name in ("cold", "p50", "p95", "at_20", "cpu"))
        table.add_row(row["language"], f"{row['units']:,}", *times, f"{row['per_second']:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
