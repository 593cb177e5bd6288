"""How long recall takes, beside what is remembered: 1,000, 10,000 and 100,000 episodes of 50 users.

`python -m benchmarks.recall [--episodes 1000 10000 100000] [--searches 300] [--milvus http://127.0.0.1:19530]`

Everything is embedded and real; without `--milvus` the index is the embedded one, which is a server of its own on
the loopback: a Milvus elsewhere is asked by the same client in the same way. Ratios are to the smallest store.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.dialogue import answer_to, message_of
from services.bootstrap import Services, make_importer, open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.memory.index import Scope
from services.platform.settings import load_settings

USERS = 50
_SCALE = 0.4
_BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
_MESSAGES_OF_A_SESSION = 20


async def _lines(begun: int, end: int) -> AsyncIterator[bytes]:
    for number in range(begun, end):
        user, turn = number % USERS, number // USERS
        asked = message_of(user, turn, _SCALE)
        at = _BEGUN + timedelta(minutes=7 * turn)
        for role, content, second in (("user", asked, 0), ("assistant", answer_to(asked, _SCALE), 20)):
            line = {
                "user_id": f"u-{user}",
                "session_id": f"s-{turn // _MESSAGES_OF_A_SESSION}",
                "role": role,
                "content": content,
                "created_at": (at + timedelta(seconds=second)).isoformat(),
            }
            yield orjson.dumps(line) + b"\n"


async def _measure(services: Services, searches: int) -> dict[str, float]:
    chance = random.Random(7)
    scopes = []
    for user in range(USERS):
        owner = await services.memory.core.owner(DEFAULT_TENANT, f"u-{user}", "default")
        scopes.append(Scope(owner.tenant_id, owner.user_id, owner.expert_id))
    now = datetime.now(UTC)
    for scope in scopes:  # what a server reads from its disk once
        await services.memory.recall.search(scope, message_of(0, 0, _SCALE), now=now)
    taken = []
    for number in range(searches):
        user = number % USERS
        query = message_of(user, chance.randrange(1000), _SCALE)[:60]
        begun = time.perf_counter()
        found = await services.memory.recall.search(scopes[user], query, now=now)
        taken.append((time.perf_counter() - begun) * 1000)
        assert found.ranking.results
        assert not found.degraded
    taken.sort()
    return {"p50": taken[len(taken) // 2], "p95": taken[int(len(taken) * 0.95)]}


async def run(sizes: list[int], searches: int, milvus: str | None) -> list[dict[str, Any]]:
    """Fill the store step by step, and measure at each size."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as folder:
        settings = load_settings(
            data_dir=Path(folder), milvus_uri=milvus, memory_summaries=False, memory_topics=False
        )
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                importer = make_importer(settings, services.database, services.jobs)
                before = 0
                for size in sorted(sizes):
                    await importer.run(DEFAULT_TENANT, _lines(before, size))
                    begun = time.perf_counter()
                    count = await services.memory.indexing.index_waiting()
                    indexing = time.perf_counter() - begun
                    figures = await _measure(services, searches)
                    rows.append({"episodes": size, "per_second": count / indexing, **figures})
                    before = size
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--milvus")
    arguments = parser.parse_args()
    rows = asyncio.run(run(arguments.episodes, arguments.searches, arguments.milvus))
    table = Table(title=f"Recall: {arguments.searches} searches over the episodes of {USERS} users")
    for column in ("episodes", "p50 ms", "p95 ms", "p50 ratio", "p95 ratio", "indexed a second"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            f"{row['episodes']:,}",
            f"{row['p50']:.1f}",
            f"{row['p95']:.1f}",
            f"{row['p50'] / rows[0]['p50']:.2f}",
            f"{row['p95'] / rows[0]['p95']:.2f}",
            f"{row['per_second']:.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
