"""How many turns a second 1, 2 and more API processes carry: measured, and compared with what one predicts.

`python -m benchmarks.capacity [--processes 1,2] [--turns 150] [--concurrency 20] [--json FILE]`

All on this machine: PostgreSQL, Milvus Lite, a Redis server, `anamnesis serve --workers N` without background
jobs, the stand-in for the model (answering at once) and the load client. Measured are the CPU of each part for a
turn, the statements and round trips of a turn (by a proxy before PostgreSQL), the CPU of its background jobs,
and bytes stored. From the run with one process follow the bounds of the others (`benchmarks.capacity_model`), with
the load on the same cores and without it, and the machines for 200 users and more. The same load goes to as many
processes of the floor (`benchmarks.floor`), which store nothing: no server gains more from a second process here.
"""

import argparse
import asyncio
import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.capacity_model import Demands, Machines, machines_for, most_turns_per_s
from benchmarks.counting_proxy import Counts, counting
from benchmarks.load import percentile
from benchmarks.load_client import Load, Samples
from benchmarks.processes import child, environment_without_settings, free_port, wait_for, weigh
from benchmarks.rig import fresh_lanes, interrupt_once
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.embedded_postgres import DATABASE, OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate

_SERVE = "from api.cli.main import app; app()"
_COUNTED_TURNS = 10
_WARM_UP_TURNS = 80
"""For each process: its first turns cost twice the CPU of later ones."""
_IDLE_S = 5.0
_JOBS_LEFT = (
    "SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing' OR (status = 'todo' AND scheduled_at IS NULL)"
)
_STORED = """
SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname !~ '^(procrastinate|job_|alembic)'
"""
_USERS = (200, 10_000, 1_000_000, 10_000_000)


@dataclass
class Stores:
    """The stores of all runs."""

    postgres: EmbeddedPostgres
    redis: "subprocess.Popen[bytes]"
    variables: dict[str, str]


@dataclass(frozen=True)
class Run:
    """One number of API processes."""

    processes: int
    turns_per_s: float
    first_p50_ms: float
    first_p99_ms: float
    demands: Demands
    cores_used: float
    """CPU of all parts for each second of the run."""
    idle_cores: float
    """CPU of the API and PostgreSQL for each second before the run, without any request."""
    floor: "Floor"


@dataclass(frozen=True)
class Floor:
    """Processes that only stream the model's answer, under an equal load."""

    turns_per_s: float
    server_ms: float
    load_ms: float


@contextmanager
def _api(
    stores: Stores, processes: int, llm_port: int, folder: Path, **variables: str
) -> Iterator[tuple[int, int]]:
    """Yield the process id of the service, and its port."""
    port = free_port()
    environment = {
        **environment_without_settings(),
        **stores.variables,
        "ANAMNESIS_DATA_DIR": str(folder / "data"),
        "ANAMNESIS_LLM_BASE_URL": f"http://127.0.0.1:{llm_port}/burst/v1",
        "ANAMNESIS_WORKER": "external",
        **variables,
    }
    arguments = ["-c", _SERVE, "serve", "--port", str(port), "--workers", str(processes)]
    with child(arguments, environment=environment, folder=folder) as process:
        wait_for(process, f"http://127.0.0.1:{port}/healthz")
        time.sleep(3.0 * processes)  # the others start after the first
        yield process.pid, port


_SERVICE = ("/api/v1/chat/stream", "event: token", "event: done")
_FLOOR = ("/chat", 'data: {"token"', "data: [DONE]")
"""Path, beginning of a token, and end."""


def _load(
    client: "subprocess.Popen[str]", port: int, turns: int, concurrency: int, form: tuple[str, str, str] = _SERVICE
) -> Samples:
    if client.stdin is None or client.stdout is None:
        raise AssertionError("the client is piped")
    path, token, end = form
    load = Load(port, path, fresh_lanes(turns), concurrency, token, end)
    client.stdin.write(json.dumps(asdict(load)) + "\n")
    client.stdin.flush()
    samples = Samples(**json.loads(client.stdout.readline()))
    if samples.failures:
        raise RuntimeError(f"{len(samples.failures)} turns failed; the first: {samples.failures[0]}")
    return samples


def _cpu_s(*pids: int) -> list[float]:
    weights = [weigh(pid) for pid in pids]
    return [weight.cpu_s + weight.postgres_cpu_s for weight in weights]


def measure_floor(
    llm: "subprocess.Popen[str]", llm_port: int, processes: int, turns: int, concurrency: int
) -> Floor:
    """Start the floor with this number of processes, and load it."""
    with ExitStack() as stack:
        client = stack.enter_context(child(["-m", "benchmarks.load_client"], piped=True))
        port = free_port()
        url = f"http://127.0.0.1:{llm_port}/burst/v1"
        bare = stack.enter_context(child(["-m", "benchmarks.floor", str(port), url, "chat", str(processes)]))
        wait_for(bare, f"http://127.0.0.1:{port}/healthz")
        _load(client, port, 3 * concurrency, concurrency, _FLOOR)
        parts = (bare.pid, client.pid, llm.pid)
        before = _cpu_s(*parts)
        samples = _load(client, port, turns, concurrency, _FLOOR)
        server, *load = (
            1000 * (after - begun) / turns for after, begun in zip(_cpu_s(*parts), before, strict=True)
        )
        return Floor(turns / samples.elapsed_s, server, sum(load))


def measure(stores: Stores, processes: int, turns: int, concurrency: int, folder: Path) -> Run:
    """Start this number of processes, warm them up, and load them."""
    with ExitStack() as stack:
        llm = stack.enter_context(child(["-m", "benchmarks.stand_in_llm"], piped=True))
        llm_port = int(llm.stdout.readline()) if llm.stdout else 0
        floor = measure_floor(llm, llm_port, processes, 4 * turns, concurrency)
        client = stack.enter_context(child(["-m", "benchmarks.load_client"], piped=True))
        pid, port = stack.enter_context(_api(stores, processes, llm_port, folder))
        _load(client, port, _WARM_UP_TURNS * processes, concurrency)
        parts = (pid, _postmaster(stores), stores.redis.pid, client.pid, llm.pid)
        before = _cpu_s(*parts[:2])
        time.sleep(_IDLE_S)
        idle = (sum(_cpu_s(*parts[:2])) - sum(before)) / _IDLE_S
        stored, before = _stored(stores), _cpu_s(*parts)
        samples = _load(client, port, turns, concurrency)
        used = [after - begun for after, begun in zip(_cpu_s(*parts), before, strict=True)]
        api, postgres, redis, *load = (1000 * cpu_s / turns for cpu_s in used)
        demands = Demands(api, postgres, redis, sum(load), (_stored(stores) - stored) / turns)
        return Run(
            processes,
            turns / samples.elapsed_s,
            percentile(samples.first_ms, 0.5),
            percentile(samples.first_ms, 0.99),
            demands,
            sum(used) / samples.elapsed_s,
            idle,
            floor,
        )


def measure_jobs(stores: Stores, turns: int, folder: Path) -> float:
    """Milliseconds of CPU of a worker, its start apart, for each turn whose jobs are left."""
    environment = {**environment_without_settings(), **stores.variables, "ANAMNESIS_DATA_DIR": str(folder / "w")}
    with child(["-c", _SERVE, "worker"], environment=environment, folder=folder, piped=True) as worker:
        if worker.stdout is None or "ready" not in worker.stdout.readline():
            raise RuntimeError("the worker did not start")
        before = weigh(worker.pid).cpu_s
        with psycopg.connect(stores.postgres.url("postgres", DATABASE), autocommit=True) as connection:
            while (connection.execute(_JOBS_LEFT).fetchone() or (0,))[0]:
                time.sleep(0.2)
        return 1000 * (weigh(worker.pid).cpu_s - before) / turns


async def count_statements(stores: Stores, folder: Path) -> tuple[float, float]:
    """Statements and round trips of a turn in a conversation, less what the idle service does in that time."""
    sockets = folder / "counted"
    sockets.mkdir()
    async with AsyncExitStack() as stack:
        counts = await stack.enter_async_context(counting(stores.postgres.sockets, sockets))
        llm = stack.enter_context(child(["-m", "benchmarks.stand_in_llm"], piped=True))
        llm_port = int(llm.stdout.readline()) if llm.stdout else 0
        url = f"postgresql://{SERVICE_ROLE}@/{DATABASE}?host={sockets}"
        api = _api(stores, 1, llm_port, folder, ANAMNESIS_DATABASE_URL=url)
        _, port = await asyncio.to_thread(api.__enter__)
        stack.push_async_callback(asyncio.to_thread, api.__exit__, None, None, None)
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30)
        )
        await _talk(client, 2)
        idle = await _counted(counts, asyncio.sleep(_IDLE_S))
        begun = time.monotonic()
        busy = await _counted(counts, _talk(client, _COUNTED_TURNS))
        share = (time.monotonic() - begun) / _IDLE_S
        return (
            (busy.statements - idle.statements * share) / _COUNTED_TURNS,
            (busy.round_trips - idle.round_trips * share) / _COUNTED_TURNS,
        )


async def _talk(client: httpx.AsyncClient, turns: int) -> None:
    for number in range(turns):
        body = {"user_id": "counted", "session_id": "s", "message": f"Tell me of number {number}."}
        answer = await client.post("/api/v1/chat/stream", json=body)
        answer.raise_for_status()


async def _counted(counts: Counts, work: Any) -> Counts:
    before = counts.copy()
    await work
    await asyncio.sleep(0.5)  # what follows the answer belongs to the turn
    return counts.copy().since(before)


def _postmaster(stores: Stores) -> int:
    return int((stores.postgres.sockets / "postmaster.pid").read_text().split("\n", 1)[0])


def _stored(stores: Stores) -> int:
    with psycopg.connect(stores.postgres.url("postgres", DATABASE), autocommit=True) as connection:
        row = connection.execute(_STORED).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def open_stores(folder: Path) -> Iterator[Stores]:
    """Start PostgreSQL, Milvus Lite and Redis; end them.

    Raises:
        SystemExit: there is no redis-server.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("no redis-server on this machine; install the system's package")
    with asyncio.Runner() as runner, ExitStack() as stack:
        postgres = EmbeddedPostgres(folder / "stores", options=("max_connections=300",))
        stack.callback(lambda: runner.run(postgres.stop()))
        runner.run(postgres.start())
        migrate(postgres.url(OWNER_ROLE), SERVICE_ROLE)
        milvus = EmbeddedMilvus(folder / "stores")
        stack.callback(lambda: runner.run(milvus.stop()))
        milvus.launch()
        runner.run(milvus.wait())
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        redis = stack.enter_context(subprocess.Popen([program, *options], stdout=subprocess.DEVNULL))
        stack.callback(redis.terminate)
        variables = {
            "DATABASE_URL": postgres.url(SERVICE_ROLE),
            "REDIS_URL": f"redis://127.0.0.1:{port}/0",
            "MILVUS_URI": milvus.uri,
            "LLM_MODEL": "stand-in",
            "LLM_API_KEY": "x",
            "LOG_LEVEL": "error",
            "MEMORY_FILING_QUIET_S": "0",
            "MEMORY_FILING_PAUSE_S": "0",  # no job waits for its time
        }
        yield Stores(postgres, redis, {f"ANAMNESIS_{name}": value for name, value in variables.items()})


def show(
    runs: Sequence[Run], statements: tuple[float, float], jobs_ms: float, machines: Sequence[Machines]
) -> None:
    """Print the tables."""
    console = Console(width=120)
    first, cores = runs[0], psutil.cpu_count() or 1
    table = Table(title="API processes")
    headings = (
        "processes",
        "turns/s",
        "× one",
        "bound with load",
        "bound without",
        "first p50 / p99 ms",
        "CPU ms of a turn: API, PostgreSQL, Redis, load",
        "cores used, idle",
        "floor turns/s, × one, CPU ms",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for run in runs:
        own = run.demands
        bounds = [most_turns_per_s(first.demands, run.processes, cores, with_load=load) for load in (True, False)]
        table.add_row(
            f"{run.processes}",
            f"{run.turns_per_s:.1f}",
            f"{run.turns_per_s / first.turns_per_s:.2f}",
            *(f"{bound:.1f}" for bound in bounds),
            f"{run.first_p50_ms:.0f} / {run.first_p99_ms:.0f}",
            f"{own.api_ms:.1f}, {own.postgres_ms:.1f}, {own.redis_ms:.1f}, {own.load_ms:.1f}",
            f"{run.cores_used:.2f} of {cores}, {run.idle_cores:.2f}",
            f"{run.floor.turns_per_s:.1f}, {run.floor.turns_per_s / first.floor.turns_per_s:.2f}, "
            f"{run.floor.server_ms:.1f} + {run.floor.load_ms:.1f}",
        )
    console.print(table)
    console.print(
        f"A turn: {statements[0]:.1f} statements, {statements[1]:.1f} round trips, {jobs_ms:.1f} ms of background "
        f"jobs, {first.demands.bytes_stored:.0f} bytes stored."
    )
    table = Table(title="Busiest hour, 60 % of a core used at most, without background jobs")
    for heading in ("users", "turns/s", "open streams", "API processes", "cores", "GB a year"):
        table.add_column(heading, justify="right")
    for each in machines:
        table.add_row(
            f"{each.users:,}",
            f"{each.turns_per_s:.2f}",
            f"{each.open_streams:.0f}",
            f"{each.api_processes}",
            f"{each.cores}",
            f"{each.gb_a_year:,.1f}",
        )
    console.print(table)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument("--processes", default="1,2", help="numbers of API processes")
    parser.add_argument("--turns", type=int, default=150, help="of each run")
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    counts = [int(count) for count in options.processes.split(",")]
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        with open_stores(folder) as stores:
            runs = [measure(stores, count, options.turns, options.concurrency, folder) for count in counts]
            turns = len(runs) * options.turns + sum(counts) * _WARM_UP_TURNS
            jobs_ms = measure_jobs(stores, turns, folder)
            statements = asyncio.run(count_statements(stores, folder))
    machines = [machines_for(users, runs[0].demands) for users in _USERS]
    show(runs, statements, jobs_ms, machines)
    if options.json:
        figures = {
            "runs": [asdict(run) for run in runs],
            "statements": statements[0],
            "round_trips": statements[1],
            "jobs_ms": jobs_ms,
            "machines": [asdict(each) for each in machines],
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
