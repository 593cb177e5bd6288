"""The store beside LangGraph's `PostgresStore`, on the same database, in turn.

    python -m benchmarks.store [--operations N] [--items N]

Milliseconds at the median and the 95th percentile, and CPU of all processes beside `PostgresStore`'s: of
`PostgresStore` in this process, of the store in this process, and of `AnamnesisStore` over HTTP to the service.
Each search embeds its query with the built-in encoder; of `PostgresStore` it goes through pgvector. In "put,
search" both also embed what was put. Filters want one item of all, none, the newest, the last tenth and the older
half; the tables are vacuumed first. Needs the package langgraph-checkpoint-postgres besides.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore
from langgraph.store.postgres import PostgresStore

from benchmarks.processes import child, cpu_s, environment_without_settings, free_port, wait_for
from langchain_anamnesis import AnamnesisStore
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.logs import configure_logs
from services.platform.migrate import migrate
from services.platform.postgres import Database
from services.platform.settings import load_settings
from services.store.model import Get, Operation, Put, Search, StoreOwner
from services.store.store import Store

_NAMESPACE = ("notes", "bench")
_OWNER = StoreOwner(DEFAULT_TENANT, "direct")
_ROUNDS = 10
_THINGS = (
    "the garden",
    "a red van",
    "violin lessons",
    "the tax return",
    "a trip to Lisbon",
    "my sister's wedding",
)
_DEEDS = ("needs water before", "was paid for on", "starts again on", "is due on", "was put off until", "ends on")


class _Encoder(Embeddings):
    """The built-in encoder, for `PostgresStore`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [each.tolist() for each in asyncio.run(self._embedder.embed_documents(texts))]

    def embed_query(self, text: str) -> list[float]:
        return asyncio.run(self._embedder.embed_query(text))


def _value(number: int) -> dict[str, Any]:
    thing, deed = _THINGS[number % 6], _DEEDS[number // 6 % 6]
    return {"text": f"{thing} {deed} day {number}", "n": number, "tags": ["a", "b"], "notes": "x" * 200}


def _query(number: int) -> str:
    return f"when was it with {_THINGS[number % 6]} on day {number}?"


def _operations(items: int) -> dict[str, Callable[[int], Sequence[Operation]]]:
    """Return what each kind does, one batch after the other."""

    def put(n: int) -> Put:
        return Put(_NAMESPACE, str(n), _value(n))

    def search(n: int) -> Search:
        return Search(_NAMESPACE, _query(n))

    def filtered(**wanted: Any) -> Search:
        return Search(_NAMESPACE, filter=wanted)

    return {
        "put": lambda n: [put(n)],
        "get": lambda n: [Get(_NAMESPACE, str(n))],
        "search": lambda n: [search(n)],
        "put, search": lambda n: [put(n), search(n)],
        "one": lambda n: [filtered(n=n)],
        "none": lambda _: [filtered(n=-1)],
        "newest": lambda _: [filtered(tags=["a", "b"])],
        "tenth": lambda _: [filtered(n={"$gt": items * 9 // 10})],
        "older half": lambda _: [filtered(n={"$lt": items // 2})],
        "tenth, search": lambda n: [Search(_NAMESPACE, _query(n), filter={"n": {"$gt": items * 9 // 10}})],
    }


def _of_each(
    run: Callable[[Sequence[Operation]], Any], of: Callable[[int], Sequence[Operation]], number: int
) -> Any:
    return run(of(number))


def _of(store: BaseStore, items: int) -> dict[str, Callable[[int], Any]]:
    def run(operations: Sequence[Operation]) -> None:
        for each in operations:
            if isinstance(each, Put):
                store.put(tuple(each.namespace), each.key, each.value or {})
            elif isinstance(each, Get):
                store.get(tuple(each.namespace), each.key)
            elif isinstance(each, Search):
                store.search(tuple(each.namespace_prefix), query=each.query, filter=each.filter)

    return {kind: partial(_of_each, run, of) for kind, of in _operations(items).items()}


def _direct(runner: asyncio.Runner, store: Store, items: int) -> dict[str, Callable[[int], Any]]:
    def batches(operations: Sequence[Operation]) -> Any:
        async def run() -> float:
            begun = time.perf_counter()
            for each in operations:
                await store.batch(_OWNER, [each])
            return time.perf_counter() - begun

        return runner.run(run())

    return {kind: partial(_of_each, batches, of) for kind, of in _operations(items).items()}


def _timed(work: Callable[[int], Any], numbers: Sequence[int]) -> list[float]:
    spent = []
    for number in numbers:
        begun = time.perf_counter()
        inner = work(number)
        seconds = inner if isinstance(inner, float) else time.perf_counter() - begun
        spent.append(1000 * seconds)
    return spent


def _measure(
    stores: dict[str, dict[str, Callable[[int], Any]]], operations: int, items: int, vacuum: Callable[[], None]
) -> None:
    for number in range(items):
        for works in stores.values():
            works["put"](number)
    for works in stores.values():
        works["search"](0)
    vacuum()
    processes = [os.getpid(), *(each.pid for each in psutil.Process().children(recursive=True))]
    print(f"{'':<15}" + "".join(f"{name:>37}" for name in stores))
    for kind in _operations(items):
        spent: dict[str, list[float]] = {name: [] for name in stores}
        cpu = dict.fromkeys(stores, 0.0)
        for round_ in range(_ROUNDS):  # in turn: the machine's speed changes
            numbers = [(round_ * operations + at) % items for at in range(operations)]
            for name, works in stores.items():
                begun = sum(map(cpu_s, processes))
                spent[name] += _timed(works[kind], numbers)
                cpu[name] += sum(map(cpu_s, processes)) - begun
        base = statistics.quantiles(spent["PostgresStore"], n=20)[-1]
        line = f"{kind:<15}"
        for name, values in spent.items():
            p95 = statistics.quantiles(values, n=20)[-1]
            line += f"{statistics.median(values):>12.2f}{p95:>9.2f}{p95 / base:>7.2f}x"
            line += f"{cpu[name] / cpu['PostgresStore']:>7.2f}x"
        print(line)


def _vacuum(*urls: str) -> None:
    for url in urls:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


async def _opened(url: str, embedder: Embedder) -> tuple[Database, Store]:
    database = Database(url)
    await database.open()
    return database, Store(database, embedder, JobQueue(database))


def _run(runner: asyncio.Runner, folder: Path, operations: int, items: int) -> None:
    server = EmbeddedPostgres(folder / "data")
    runner.run(server.start())
    migrate(server.url(OWNER_ROLE), SERVICE_ROLE)
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE langgraph")
    theirs = psycopg.conninfo.make_conninfo(server.url("postgres"), dbname="langgraph")
    embedder = Embedder.of(load_settings(data_dir=folder / "data"))
    embedder.load()
    port = free_port()
    environment = environment_without_settings() | {
        "ANAMNESIS_DATABASE_URL": server.url(SERVICE_ROLE),
        "ANAMNESIS_DATA_DIR": str(folder / "service"),
        "ANAMNESIS_PORT": str(port),
    }
    database, store = runner.run(_opened(server.url(SERVICE_ROLE), embedder))
    index = {"dims": embedder.dimension, "embed": _Encoder(embedder), "fields": ["$"]}
    try:
        with (
            child(["-m", "anamnesis_agent", "serve"], environment=environment) as service,
            PostgresStore.from_conn_string(theirs) as plain,
            PostgresStore.from_conn_string(theirs, index=index) as searched,
            AnamnesisStore(f"http://127.0.0.1:{port}", user="over HTTP") as over_http,
        ):
            searched.setup()
            wait_for(service, f"http://127.0.0.1:{port}/readyz")
            print("median, 95th percentile in ms, its ratio to PostgresStore's, and the ratio of CPU")
            with_index = _of(searched, items)

            for number in range(items):
                with_index["put"](number)
            _measure(
                {
                    # Its writes are timed without embedding, as ours embed nothing either.
                    "PostgresStore": _of(plain, items)
                    | {kind: work for kind, work in with_index.items() if "search" in kind},
                    "the store, in process": _direct(runner, store, items),
                    "AnamnesisStore over HTTP": _of(over_http, items),
                },
                operations,
                items,
                partial(_vacuum, server.url(OWNER_ROLE), theirs),
            )
    finally:
        runner.run(database.close())
        runner.run(server.stop())


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=50, help="of each kind in each of ten rounds")
    parser.add_argument("--items", type=int, default=500)
    given = parser.parse_args()
    configure_logs("console", "error")
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-") as folder, asyncio.Runner() as runner:
        _run(runner, Path(folder), given.operations, given.items)


if __name__ == "__main__":
    main()
