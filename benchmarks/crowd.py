"""A crowd of users with memory in one service: what filling costs, turns cold and warm, memory, disk, a night.

`python -m benchmarks.crowd --folder DIR --users 2000 [--units 200] [--seconds 600] [--gigabytes 40]`

The crowd is imported and indexed as an import is (`services/transfer/importer.py`), without HTTP, in one
embedded PostgreSQL and one Milvus Lite. It stays in the folder: a run that was broken off, or had no time left, is
repeated and goes on, also with more users. Then a night's upkeep is done. Last the service runs over it, its model
answering at once, summaries and filing off: first turns of users since its start (cold), the next turns of them
(warm), and turns at a fixed rate, of users as often as they are active.

How active users are differs by a truncated power law with the exponent 2, as Zipf's law says: D. Wilkinson,
"Strong regularities in online peer production" (EC 2008); Á. Tenorio-Fornés, J. Arroyo and S. Hassan,
"Participation in wiki communities" (PeerJ Computer Science 2022). A user's number alone says how much it has, so
that a crowd can grow.
"""

import argparse
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from random import Random
from typing import get_args

import orjson
import uvloop
from psycopg.rows import tuple_row
from rich.console import Console
from rich.table import Table

from benchmarks.load import percentile
from benchmarks.processes import weigh
from benchmarks.recall import lines_of
from benchmarks.rig import Client, Server, load_client, service, stand_in
from benchmarks.startup import memory_of
from benchmarks.turn_messages import Language, Messages
from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.llm.embeddings import Embedder, Vector
from services.memory.upkeep.scheduler import UPKEEP
from services.platform.settings import load_settings

_MOST = 5_000
"""Exchanges of the most active user there can be."""
_USERS_AT_ONCE = 50
_TEXTS = 1_000
"""Messages of each language, of which users have said some."""
_MEMORIES = 0.05
"""Written memories for each exchange."""
_COLD, _AT_ONCE = 200, 2
_OFF = {"memory_summaries": False, "memory_topics": False, "memory_filing": False}

Row = tuple[str, str]


def exchanges_of(user: int, mean: float) -> int:
    """Exchanges of a user: at least two, with a density that falls with the square of their number."""
    least = mean / 6
    while least * log(_MOST / least) / (1 - least / _MOST) < mean:
        least *= 1.01
    drawn = Random(f"activity {user}").random()
    return max(2, round(least / (1 - drawn * (1 - least / _MOST))))


async def _lines(users: Iterable[int], mean: float, said: dict[int, list[str]]) -> AsyncIterator[bytes]:
    for user in users:
        count, chosen = exchanges_of(user, mean), Random(user)
        async for line in lines_of(_name(user), chosen.choices(said[user % 2], k=count)):
            yield line
        for number, text in enumerate(chosen.sample(said[user % 2], round(count * _MEMORIES))):
            memory = {
                "kind": "episode",
                "user_id": _name(user),
                "episode_type": "preference",
                "content": text,
                "importance": 0.6,
                "origin": "user_said",
                "created_at": (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=number)).isoformat(),
            }
            yield orjson.dumps(memory) + b"\n"


def _keep_vectors(embedder: Embedder) -> None:
    """Embed each text once: users of a crowd say the same things; `benchmarks.importing` shows what it costs."""
    kept: dict[str, Vector] = {}
    embed = embedder.embed_documents

    async def embed_documents(texts: Sequence[str], *, again: bool = False) -> list[Vector]:
        new = list({text for text in texts if text not in kept})
        kept.update(zip(new, await embed(new, again=again), strict=True))
        return [kept[text] for text in texts]

    embedder.embed_documents = embed_documents  # type: ignore[method-assign]


def _name(user: int) -> str:
    return f"user-{user}"


class _Meter:
    """Wall time, and CPU of this process, PostgreSQL and Milvus, since it was made."""

    def __init__(self) -> None:
        self._begun, self._before = time.monotonic(), weigh(os.getpid())

    def read(self) -> tuple[float, float, float, float]:
        """Seconds of wall time, of this process, of PostgreSQL, and of Milvus."""
        now, was = weigh(os.getpid()), self._before
        others = (now.cpu_s - now.own_cpu_s) - (was.cpu_s - was.own_cpu_s)
        postgres = now.postgres_cpu_s - was.postgres_cpu_s
        # A Milvus that was started again takes its CPU along
        return time.monotonic() - self._begun, now.own_cpu_s - was.own_cpu_s, postgres, max(others, 0.0)


async def fill(
    services: Services, given: argparse.Namespace, show: Callable[[str], None]
) -> tuple[int, list[Row]]:
    """Import and index users until all are there, or time or disk are used up; return how many there are."""
    note = given.folder / "crowd.json"
    there, units = json.loads(note.read_text()) if note.exists() else (0, 0)
    mean, end = given.units / 2, time.monotonic() + given.seconds
    messages = Messages(given.messages)
    said = {n: messages.some(language, "statement", _TEXTS) for n, language in enumerate(get_args(Language))}
    _keep_vectors(services.embedder)
    spent = {"import": [0.0] * 4, "index": [0.0] * 4}
    before, why = units, ""
    await services.memory.indexing.index_waiting()  # what a run that was broken off has left
    while there < given.users and not why:
        users = range(there, min(there + _USERS_AT_ONCE, given.users))
        for what, so_far in spent.items():
            meter = _Meter()
            if what == "import":
                report = await services.importer.run(DEFAULT_TENANT, _lines(users, mean, said))
            else:
                await services.memory.indexing.index_waiting()
            spent[what] = [one + more for one, more in zip(so_far, meter.read(), strict=True)]
        there, units = users.stop, units + report.imported
        note.write_text(json.dumps((there, units)))
        show(f"{there} users, {units} units")
        if time.monotonic() > end:
            why = "the time was over"
        elif _gigabytes(given.folder) > given.gigabytes:
            why = "the disk was as full as it may be"
    rows = [("users there", f"{there:,}{f' of {given.users:,}: {why}' if why else ''}"), ("units", f"{units:,}")]
    if new := units - before:
        for what, (wall, own, postgres, milvus) in spent.items():
            parts = f"{own / new * 1e3:.2f} + {postgres / new * 1e3:.2f} + {milvus / new * 1e3:.2f}"
            rows.append(
                (f"{what}: CPU ms a unit, here + PostgreSQL + Milvus", f"{parts}; {new / wall:,.0f} a second")
            )
    return there, rows


async def night(services: Services, seconds: float) -> list[Row]:
    """Do the upkeep of the next night for as many users as the time allows."""
    now = (datetime.now(UTC) + timedelta(days=1)).replace(hour=3, minute=30)
    meter = _Meter()
    found = await services.upkeep_scheduler.find(now)
    looked = meter.read()
    # Taken from the queue: the service that is measured next would do them.
    statement = "DELETE FROM procrastinate_jobs WHERE task_name = %(task)s RETURNING (args->>'user_id')::uuid"
    due = [row[0] for row in await services.database.fetch(DEFAULT_TENANT, statement, {"task": UPKEEP}, tuple_row)]
    meter, done = _Meter(), 0
    for user_id in due:
        await services.upkeep_scheduler.keep_up(DEFAULT_TENANT, user_id, now)
        done += 1
        if meter.read()[0] > seconds:
            break
    _, own, postgres, _ = meter.read()
    each = (own + postgres) / max(done, 1)
    return [
        ("upkeep: users due, seconds to find them", f"{found:,}, {looked[0]:.1f}"),
        (
            "upkeep of a user: CPU ms, here + PostgreSQL",
            f"{own / (done or 1) * 1e3:.1f} + {postgres / (done or 1) * 1e3:.1f}",
        ),
        ("upkeep of a night: CPU s", f"{each * found:,.0f} (of {done:,} users measured)"),
    ]


def turns(given: argparse.Namespace, users: int) -> list[Row]:
    """Serve the crowd, and load the service with turns: of users not yet active, of the same, and at a rate."""
    rows: list[Row] = []
    messages, random = Messages(given.messages), Random(time.time_ns())
    some = random.sample(range(users), min(_COLD, users))
    mean = given.units / 2
    often = [exchanges_of(user, mean) for user in range(users)]
    many = random.choices(range(users), often, k=round(given.rate * given.rate_seconds))
    variables = {f"ANAMNESIS_{name.upper()}": "off" for name in _OFF}
    variables["ANAMNESIS_DATA_DIR"] = str(given.folder / "data")
    with ExitStack() as stack:
        port = stack.enter_context(stand_in())
        url = f"http://127.0.0.1:{port}/burst/v1"
        server = stack.enter_context(service(url, "responses", **variables))
        client = stack.enter_context(load_client())
        rows.append(_row(server, client, "warm-up, without memory", [_lane(messages, -1) for _ in range(50)]))
        rows.append(("memory at rest, PSS MB", _memory(server)))
        rows.append(_row(server, client, "cold, users", [_lane(messages, user) for user in some]))
        rows.append(_row(server, client, "warm, the same", [_lane(messages, user) for user in some]))
        lanes = [_lane(messages, user) for user in many]
        rows.append(_row(server, client, f"{given.rate:g} a second, turns", lanes, rate=given.rate))
        rows.append(("memory after it, PSS MB", _memory(server)))
    return rows


def _lane(messages: Messages, user: int) -> list[dict[str, str]]:
    language: Language = "zh" if user % 2 else "en"
    (text,) = messages.some(language, "question", 1)
    return [{"user_id": _name(user), "session_id": f"new-{time.time_ns()}", "message": text}]


def _row(
    server: Server, client: Client, what: str, lanes: list[list[dict[str, str]]], rate: float | None = None
) -> Row:
    load = replace(server.load(lanes, _AT_ONCE), rate=rate)
    samples, before, after = client.measure(server, load)
    first = samples.first_ms
    cpu = (after.own_cpu_s - before.own_cpu_s) / len(lanes) * 1e3
    postgres = (after.postgres_cpu_s - before.postgres_cpu_s) / len(lanes) * 1e3
    milvus = (after.cpu_s - before.cpu_s) / len(lanes) * 1e3 - cpu
    return (
        f"{what}: {len(lanes)}",
        f"first token p50 {percentile(first, 0.5):.0f}, p95 {percentile(first, 0.95):.0f} ms; "
        f"{samples.without_recall} without recall, {samples.refused} refused; "
        f"CPU {cpu:.0f} + {postgres:.0f} + {milvus:.0f} ms",
    )


def _memory(server: Server) -> str:
    return ", ".join(f"{kind} {size:,.0f}" for kind, size in memory_of(server.pid).items())


def _gigabytes(folder: Path) -> float:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) / 1e9


def _disk(folder: Path, users: int) -> Row:
    parts = {name: _gigabytes(folder / "data" / name) for name in ("postgres", "milvus")}
    told = (f"{name} {size * 1e6 / users:,.0f} KB" for name, size in parts.items())
    return f"disk, {sum(parts.values()):.2f} GB: a user", ", ".join(told)


async def _with_stores(given: argparse.Namespace, console: Console) -> tuple[int, list[Row]]:
    settings = load_settings(data_dir=given.folder / "data", **_OFF)
    async with AsyncExitStack() as stack:
        engines = await stack.enter_async_context(open_engines(settings, alone=True))
        await migrate_if_owner(engines)
        services = await stack.enter_async_context(open_services(settings, engines))
        users, rows = await fill(services, given, lambda told: console.print(told, end="\r"))
        return users, rows if given.only_fill else rows + await night(services, given.night)


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the crowd is kept")
    parser.add_argument("--users", type=int, default=2_000)
    parser.add_argument("--units", type=int, default=200, help="of a user, on average")
    parser.add_argument("--seconds", type=float, default=600, help="to fill, at most")
    parser.add_argument("--gigabytes", type=float, default=40, help="of disk, at most")
    parser.add_argument("--night", type=float, default=60, help="seconds of upkeep, at most")
    parser.add_argument("--rate", type=float, default=10, help="turns a second")
    parser.add_argument("--rate-seconds", type=float, default=30, help="for which turns begin at the rate")
    parser.add_argument("--only-fill", action="store_true", help="measure neither a night nor turns")
    parser.add_argument("--messages", type=Path, metavar="FOLDER", help="of dialogues; without, they are made up")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    given.folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
    console = Console(width=150)
    users, rows = uvloop.run(_with_stores(given, console))
    rows.append(_disk(given.folder, users))
    if not given.only_fill:
        rows += turns(given, users)
    table = Table("what", "figure", title=f"{users:,} users, load {os.getloadavg()[0]:.0f}")
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
