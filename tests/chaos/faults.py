"""Play one fault after the other under load, and print how long its users waited beyond it.

    python -m tests.chaos.faults [--only NAME …] [--users 10] [--turns 8]

A row says how many turns were answered, how the others ended, the longest wait of a message from its first request
to the end of its answer, and by how much that is longer than the fault. The exit code is 1 if a wait is longer by
more than five seconds, or if a promise was broken. Clients behave as the documentation asks them to: they send a
message again, with its key, when a connection breaks or a 503 comes.
"""

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson
import psutil

from tests.chaos.checks import broken_promises
from tests.chaos.client import Told
from tests.chaos.cluster import Cluster, echo, echoed, open_cluster
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

_BEGINS_S = 3.0
_GAP_S = 0.3
_OVER_S = 5.0
_GIVE_UP_S = 150.0
_PROGRAM = (sys.executable, "-P", "-m", "anamnesis_agent")


@dataclass
class Stage:
    """What clients talk to, and what can be broken in it."""

    addresses: list[str]
    model: ModelServer
    cluster: Cluster | None = None
    service: ServiceProcess | None = None
    database_url: str | None = None


@dataclass
class Row:
    """What came of one fault."""

    name: str
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    slowest: str = ""
    """What became of each request for the message that waited longest."""
    outcomes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    @property
    def over_s(self) -> float:
        """Seconds by which the longest wait is longer than the fault."""
        return max(self.waits) - self.seconds

    def __str__(self) -> str:
        others = ", ".join(f"{count} {name}" for name, count in self.outcomes.items() if name != "done")
        line = f"{self.name:<34}{self.outcomes['done']:>5} {others or '-':<28}{self.seconds:>7.1f}"
        lines = [f"{line}{max(self.waits):>8.1f}{self.over_s:>+8.1f}"]
        if self.over_s > _OVER_S:
            lines.append(f"  the slowest: {self.slowest}")
        return "\n".join([*lines, *(f"  BROKEN: {each}" for each in self.broken)])


Act = Callable[[Stage], Awaitable[float]]
"""Breaks something, mends it, and returns the seconds for which it was broken."""


async def nothing(_: Stage) -> float:
    return 0.0


async def kill_api(stage: Stage) -> float:
    """Kill one of two processes and leave it dead until the load has passed."""
    assert stage.cluster
    stage.cluster.processes[0].kill()
    return 0.0


def pause_api(seconds: float) -> Act:
    """Stop one of two processes for a while."""

    async def act(stage: Stage) -> float:
        assert stage.cluster
        with _stopped([psutil.Process(stage.cluster.processes[0].process.pid)]):  # type: ignore[union-attr]
            await asyncio.sleep(seconds)
        return seconds

    return act


def stop_postgres(seconds: float) -> Act:
    """End PostgreSQL as a crash does, and start it again after a while."""

    async def act(stage: Stage) -> float:
        assert stage.cluster
        begun = time.monotonic()
        _postmaster(stage.cluster).send_signal(signal.SIGQUIT)
        await asyncio.sleep(seconds)
        await stage.cluster.postgres.start()
        return time.monotonic() - begun

    return act


def pause_postgres(seconds: float) -> Act:
    """Stop all of PostgreSQL for a while."""

    async def act(stage: Stage) -> float:
        assert stage.cluster
        postmaster = _postmaster(stage.cluster)
        with _stopped([*postmaster.children(recursive=True), postmaster]):
            await asyncio.sleep(seconds)
        return seconds

    return act


def hang_model(seconds: float) -> Act:
    """Let the model say nothing to what it is asked for a while; it never answers those requests."""

    async def act(stage: Stage) -> float:
        until = time.monotonic() + seconds

        def hung(received: Received) -> Reply:
            return Reply(delay_s=600) if time.monotonic() < until else echo(received)

        stage.model.default = hung
        await asyncio.sleep(seconds)
        return seconds

    return act


async def kill_worker(stage: Stage) -> float:
    """Kill one of the processes that share a port."""
    assert stage.service
    _forked(stage.service)[0].children()[0].kill()
    return 0.0


async def kill_fork_server(stage: Stage) -> float:
    """Kill the server of forks, with which all processes that share the port end."""
    assert stage.service
    _forked(stage.service)[0].kill()
    return 0.0


CLUSTER: dict[str, Act] = {
    "none": nothing,
    "one of two APIs killed": kill_api,
    "one of two APIs hangs 20 s": pause_api(20),
    "PostgreSQL away 15 s": stop_postgres(15),
    "PostgreSQL away 30 s": stop_postgres(30),
    "PostgreSQL hangs 20 s": pause_postgres(20),
    "model hangs 12 s": hang_model(12),
}
WORKERS: dict[str, Act] = {
    "--workers 2: one killed": kill_worker,
    "--workers 2: fork server killed": kill_fork_server,
}


async def play(name: str, act: Act, stage: Stage, *, users: int, turns: int) -> Row:
    """Let users talk, break something meanwhile, and return what they were told."""
    row = Row(name)
    told = [
        [Told(f"{name}-{user}", "s", f"{name} {user} {turn}") for turn in range(turns)] for user in range(users)
    ]
    async with httpx.AsyncClient(timeout=httpx.Timeout(60, connect=2)) as http:
        for _ in range(3):  # the first turns of a process take longer
            await _talk(http, stage.addresses, [Told("warm", "s", f"{name} {random.random()}")], Row(name))
        talking = [asyncio.create_task(_talk(http, stage.addresses, each, row)) for each in told]
        await asyncio.sleep(_BEGINS_S)
        row.seconds = await act(stage)
        await asyncio.gather(*talking)
    if stage.database_url:
        row.broken += broken_promises([one for each in told for one in each], stage.database_url, echoed)
    return row


async def _talk(http: httpx.AsyncClient, addresses: Sequence[str], told: Sequence[Told], row: Row) -> None:
    for one in told:
        begun = time.monotonic()
        fates: list[str] = []
        try:
            async with asyncio.timeout(_GIVE_UP_S):
                while True:
                    at = random.choice(addresses)
                    fate = await _sent(http, at, one, row)
                    fates.append(f"{fate} of {at.rpartition(':')[2]} at {time.monotonic() - begun:.1f} s")
                    if fate == "end":
                        break
                    await asyncio.sleep(0.2)
        except TimeoutError:
            row.broken.append(f"{one.message} was never told its end")
        if (waited := time.monotonic() - begun) > max(row.waits, default=0.0):
            row.slowest = f"{one.turn_ids} {', '.join(fates)}"
        row.waits.append(waited)
        await asyncio.sleep(_GAP_S)


async def _sent(http: httpx.AsyncClient, address: str, one: Told, row: Row) -> str:
    """Send a message once; return what came of it: `end` if its end was told."""
    body = {"user_id": one.user_id, "session_id": one.session_id, "message": one.message}
    headers = {"Idempotency-Key": one.key}
    one.events.clear()
    try:
        async with http.stream("POST", f"{address}/api/v1/chat/stream", json=body, headers=headers) as response:
            if response.status_code in {502, 503, 504}:
                return str(response.status_code)
            number = 0
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    number = int(line.removeprefix("id: "))
                elif line.startswith("data: "):
                    data = orjson.loads(line.removeprefix("data: "))
                    if data["status"] in {"done", "error"}:
                        content = data["content"]
                        one.last.append((data["status"], content))
                        one.turn_ids.add(content["turn_id"])
                        row.outcomes[content.get("code", "done")] += 1
                        return "end"
                    one.events[number] = data["status"], data["content"]
    except httpx.HTTPError as error:
        return type(error).__name__
    return "no end"


@contextlib.contextmanager
def _stopped(processes: Sequence[psutil.Process]):  # type: ignore[no-untyped-def]
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.suspend()
    try:
        yield
    finally:
        for each in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.resume()


def _postmaster(cluster: Cluster) -> psutil.Process:
    pid = cluster.postgres._postmaster()
    assert pid
    return psutil.Process(pid)


def _forked(service: ServiceProcess) -> list[psutil.Process]:
    assert service.process
    children = psutil.Process(service.process.pid).children()
    return [each for each in children if "multiprocessing.forkserver" in " ".join(each.cmdline())]


@asynccontextmanager
async def _cluster() -> AsyncIterator[Stage]:
    async with open_cluster(durable=True) as cluster:
        await cluster.until_ready()
        yield Stage(cluster.addresses, cluster.model, cluster=cluster, database_url=cluster.database_url)
        for process in cluster.processes:
            if not process.alive:
                await asyncio.to_thread(process.start)


@asynccontextmanager
async def _workers() -> AsyncIterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="anamnesis-faults-") as folder, ModelServer() as model:
        model.default = echo
        service = ServiceProcess(
            Path(folder) / "data",
            free_port(),
            program=_PROGRAM,
            arguments=["--workers", "2"],
            environment={"PYTHONPATH": str(ROOT)},
            llm_model="scripted",
            llm_base_url=model.base_url,
            llm_timeout_s="60",
            llm_first_token_s="15",
            log_level="warning",
        )
        await asyncio.to_thread(service.start)
        try:
            yield Stage([service.url], model, service=service)
        finally:
            await asyncio.to_thread(service.end)


async def run(only: Sequence[str], *, users: int, turns: int) -> list[Row]:
    """Play the faults whose names hold one of `only`, or all; print each row as it is there."""
    rows = []
    sys.stdout.write(f"{'fault':<34}{'done':>5} {'other':<28}{'fault s':>7}{'worst':>8}{'over':>8}\n")
    for faults, stage in ((CLUSTER, _cluster), (WORKERS, _workers)):
        for name, act in faults.items():
            if only and not any(each in name for each in only):
                continue
            async with stage() as opened:
                rows.append(await play(name, act, opened, users=users, turns=turns))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    return rows


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--turns", type=int, default=8)
    asked = parser.parse_args()
    rows = asyncio.run(run(asked.only, users=asked.users, turns=asked.turns))
    sys.exit(any(row.broken or row.over_s > _OVER_S for row in rows))


if __name__ == "__main__":
    main()
