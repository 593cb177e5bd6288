"""Two API processes, two workers, PostgreSQL, Redis and a model, all on this machine, to be broken at random."""

import asyncio
import contextlib
import random
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from tests.conftest import UNSAFE_BUT_FAST
from tests.support.milvus_server import MilvusServer
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.ports import free_port
from tests.support.redis_servers import redis_process
from tests.support.service_process import ServiceProcess

PIECES = 12
_GAP_S = 0.02


class Cluster:
    """The processes, and what can be done to them."""

    def __init__(
        self, folder: Path, postgres: EmbeddedPostgres, redis: "subprocess.Popen[bytes]", redis_url: str
    ) -> None:
        self.postgres = postgres
        self.database_url = postgres.url(SERVICE_ROLE)
        self.model = ModelServer()
        self._redis = redis
        self._folder = folder
        self._redis_url = redis_url
        self.processes: list[ServiceProcess] = []
        self.milvus = MilvusServer(folder / "milvus")
        self.counts = {
            "api killed": 0,
            "api paused": 0,
            "worker killed": 0,
            "redis paused": 0,
            "milvus stopped": 0,
            "milvus paused": 0,
            "milvus killed": 0,
        }

    async def start(self) -> None:
        """Start two of each."""
        self.model.__enter__()
        self.model.default = echo
        await asyncio.to_thread(self.milvus.start)
        for number, command in enumerate(("serve", "serve", "worker", "worker")):
            self.processes.append(
                ServiceProcess(
                    self._folder / f"data-{number}",
                    free_port(),
                    command=command,
                    database_url=self.database_url,
                    redis_url=self._redis_url,
                    milvus_uri=self.milvus.uri,
                    worker="external",
                    llm_model="scripted",
                    llm_base_url=self.model.base_url,
                    llm_timeout_s="60",
                    llm_first_token_s="15",
                    log_level="warning",
                )
            )
        await asyncio.gather(*(asyncio.to_thread(process.start) for process in self.processes))

    async def until_ready(self) -> None:
        """Wait until every API process answers: one may have been started a moment ago."""
        async with asyncio.timeout(60), httpx.AsyncClient() as http:
            for address in self.addresses:
                ready = False
                while not ready:
                    with contextlib.suppress(httpx.HTTPError):
                        ready = (await http.get(f"{address}/readyz")).status_code == 200
                    await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """End everything that is left."""
        self._redis.send_signal(signal.SIGCONT)
        await asyncio.gather(*(asyncio.to_thread(process.stop) for process in self.processes if process.alive))
        self.model.__exit__(None, None, None)
        await asyncio.to_thread(self.milvus.stop)

    @property
    def addresses(self) -> list[str]:
        """Of the API processes, alive or not."""
        return [process.url for process in self.processes[:2]]

    async def disturb(self, random: random.Random) -> None:
        """Kill a process, or pause or end a store, until cancelled. Whatever was ended is started again."""
        try:
            await self._disturb_milvus(random)  # a short run has little time for every kind
            while True:
                await asyncio.sleep(random.uniform(1.0, 3.0))
                what = random.choices(("api", "pause", "worker", "redis", "milvus"), (5, 2, 2, 3, 4))[0]
                if what == "milvus":
                    await self._disturb_milvus(random)
                elif what == "redis":
                    self._redis.send_signal(signal.SIGSTOP)
                    self.counts["redis paused"] += 1
                    await asyncio.sleep(random.uniform(0.3, 3.0))
                    self._redis.send_signal(signal.SIGCONT)
                elif what == "pause":
                    # The longer one is thought dead by the others, and goes on nevertheless.
                    process = random.choice(self.processes[:2])
                    process.send(signal.SIGSTOP)
                    self.counts["api paused"] += 1
                    await asyncio.sleep(random.choice((1.0, 2.0, 3.0, 18.0)))
                    process.send(signal.SIGCONT)
                else:
                    process = random.choice(self.processes[:2] if what == "api" else self.processes[2:])
                    process.kill()
                    self.counts[f"{what} killed"] += 1
                    await asyncio.sleep(random.uniform(0.0, 1.0))
                    await asyncio.to_thread(process.start)
        finally:
            self._redis.send_signal(signal.SIGCONT)
            self.milvus.send(signal.SIGCONT)
            if not self.milvus.alive:
                await asyncio.to_thread(self.milvus.start)
            for process in self.processes:
                process.send(signal.SIGCONT)
                if not process.alive:
                    await asyncio.to_thread(process.start)

    async def _disturb_milvus(self, random: random.Random) -> None:
        how = random.choice(("stopped", "paused", "killed"))
        self.counts[f"milvus {how}"] += 1
        if how == "paused":
            self.milvus.send(signal.SIGSTOP)
        else:
            end = signal.SIGKILL if how == "killed" else signal.SIGINT
            await asyncio.to_thread(self.milvus.stop, end)
        await asyncio.sleep(random.uniform(0.3, 3.0))
        if how == "paused":
            self.milvus.send(signal.SIGCONT)
        else:
            await asyncio.to_thread(self.milvus.start)


def echo(received: Received) -> Reply:
    """An answer that belongs to one message only, in pieces; or a summary."""
    if received.prompt[0][1].startswith("You write a summary"):
        return Reply(["They talk."], gap_s=_GAP_S)
    asked = received.prompt[-1][1]
    return Reply([f"{asked}/{number} " for number in range(PIECES)], gap_s=_GAP_S)


def echoed(message: str) -> str:
    """The whole answer to a message."""
    return "".join(f"{message}/{number} " for number in range(PIECES))


@asynccontextmanager
async def open_cluster(*, durable: bool = False) -> AsyncIterator[Cluster]:
    """Start all of it; end all of it. Only a `durable` PostgreSQL keeps everything when it crashes."""
    with tempfile.TemporaryDirectory(prefix="anamnesis-chaos-") as name:
        folder = Path(name)
        postgres = EmbeddedPostgres(folder / "postgres-data", options=() if durable else UNSAFE_BUT_FAST)
        await postgres.start()
        try:
            with redis_process(folder, "--save", "") as redis:
                await asyncio.to_thread(migrate, postgres.url(OWNER_ROLE), SERVICE_ROLE)
                address = f"redis://127.0.0.1:{redis.port}/0"
                cluster = Cluster(folder, postgres, redis.process, address)
                try:
                    await cluster.start()
                    yield cluster
                finally:
                    await cluster.stop()
        finally:
            await postgres.stop()
