"""Restart and upgrade two API processes behind nginx while streams are open; no client may notice.

Every stream is one request, sent once: a status other than 200, a connection that breaks, an event `error` or an
answer that is not complete is a failed turn. nginx may pass a request to the other process when the first refuses
the connection.
"""

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate, newest_revision
from tests.conftest import UNSAFE_BUT_FAST
from tests.support.folders import new_folder
from tests.support.fork_server import ROOT
from tests.support.milvus_server import MilvusServer
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port, wait_for_port
from tests.support.redis_servers import redis_process
from tests.support.service_process import ServiceProcess, answer_of, events_of

ANSWER = [f"word{number} " for number in range(16)]
_GAP_S = 0.5
_PAUSE_S = 0.5
_PACKAGES = ("anamnesis_agent", "anamnesis_client", "api", "graph", "nodes", "services", "state")
_VERSIONS = Path("services", "platform", "migrations", "versions")
_UPGRADES = 3
"""Rounds of an upgrade: to the next version, back, and to it again."""

_CONFIGURATION = """
{user}
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream anamnesis {{ server 127.0.0.1:{one} max_fails=0; server 127.0.0.1:{two} max_fails=0; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://anamnesis; proxy_http_version 1.1;
            proxy_set_header Host localhost; proxy_set_header Connection ""; proxy_buffering off;
        }}
    }}
}}
"""

# The next version of the program: the same, and a migration that expands every table that turns write.
_MIGRATION = '''
"""Room for something new in every table that turns write."""

from alembic import op

revision = "{revision}"
down_revision = "{before}"


def upgrade() -> None:
    for table in ("users", "conversations", "messages", "turns", "episodes", "visits", "core_memory_blocks"):
        op.execute(f"ALTER TABLE {{table}} ADD COLUMN of_next text NOT NULL DEFAULT 'x'")
    op.execute("CREATE TABLE of_next (id uuid PRIMARY KEY, tenant_id uuid NOT NULL REFERENCES tenants)")
    op.execute("CREATE INDEX messages_of_next ON messages (of_next, created_at)")
'''


@dataclass
class Figures:
    """What the clients saw."""

    completed: int = 0
    failed: list[str] = field(default_factory=list)
    restarts: int = 0
    """Of single processes."""


@dataclass
class Rig:
    """Two API processes with inline workers behind nginx, over PostgreSQL, Redis and Milvus Lite."""

    folder: Path
    owner_url: str
    database_url: str
    processes: list[ServiceProcess]
    address: str
    variables: dict[str, Any]

    def processes_of(self, root: Path) -> list[ServiceProcess]:
        """Return the same two processes, as the version of the program in a folder."""
        return [
            ServiceProcess(
                self.folder / f"data-{number}",
                int(process.url.rpartition(":")[2]),
                program=(sys.executable, "-P", "-m", "anamnesis_agent"),
                environment={"PYTHONPATH": str(root)},
                **self.variables,
            )
            for number, process in enumerate(self.processes)
        ]

    def migrate(self, root: Path) -> None:
        """Run `anamnesis migrate` of the version in a folder."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "ANAMNESIS_DATABASE_URL": self.database_url,
            "ANAMNESIS_MIGRATION_DATABASE_URL": self.owner_url,
        }
        command = [sys.executable, "-P", "-m", "anamnesis_agent", "migrate"]
        subprocess.run(command, env=environment, cwd=self.folder, check=True, capture_output=True)


def next_version(folder: Path) -> Path:
    """Write the next version of the program into a folder: the same with one more migration."""
    root = folder / "next"
    for package in _PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    revision = f"{int(newest_revision()) + 1:04}"
    migration = _MIGRATION.format(revision=revision, before=newest_revision())
    (root / _VERSIONS / f"{revision}_of_next.py").write_text(migration)
    return root


@asynccontextmanager
async def open_rig() -> AsyncIterator[Rig]:
    """Start all of it; end all of it."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(new_folder()))
        postgres = EmbeddedPostgres(folder / "postgres-data", options=UNSAFE_BUT_FAST)
        stack.push_async_callback(postgres.stop)
        await postgres.start()
        owner_url, database_url = postgres.url(OWNER_ROLE), postgres.url(SERVICE_ROLE)
        redis = stack.enter_context(redis_process(folder, "--save", ""))
        milvus = MilvusServer(folder / "milvus")
        stack.callback(milvus.stop)
        await asyncio.to_thread(milvus.start)
        model = stack.enter_context(ModelServer())
        model.default = Reply(ANSWER, gap_s=_GAP_S)
        variables: dict[str, Any] = {
            "database_url": database_url,
            "redis_url": f"redis://127.0.0.1:{redis.port}/0",
            "milvus_uri": milvus.uri,
            "llm_model": "scripted",
            "llm_base_url": model.base_url,
            "log_level": "warning",
            "memory_filing": "off",  # it would ask the scripted model
            "memory_summaries": "off",
        }
        processes = [ServiceProcess(folder / f"data-{number}", free_port(), **variables) for number in range(2)]
        address = stack.enter_context(_balancer(folder, [process.url for process in processes]))
        rig = Rig(folder, owner_url, database_url, processes, address, variables)
        await asyncio.to_thread(migrate, owner_url, SERVICE_ROLE)
        for process in rig.processes:
            stack.callback(process.end)
        await asyncio.gather(*(asyncio.to_thread(process.start) for process in rig.processes))
        yield rig


@contextmanager
def _balancer(folder: Path, urls: list[str]) -> Iterator[str]:
    port = free_port()
    one, two = (url.rpartition(":")[2] for url in urls)
    user = "user root;" if os.getuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(user=user, folder=folder, port=port, one=one, two=two))
    command = ["nginx", "-c", str(configuration), "-p", str(folder), "-e", f"{folder}/error.log"]
    process = subprocess.Popen(command)
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


async def restart_under_load(restarts: int, streams: int) -> Figures:
    """Restart both processes, one after the other, `restarts` times."""
    async with open_rig() as rig, _under_load(rig, streams) as figures:
        for _ in range(restarts):
            for process in rig.processes:
                await _replace(process, process, figures)
    return figures


async def upgrade_under_load(streams: int) -> Figures:
    """Migrate to the next version's schema, upgrade process by process, go back, and upgrade again. Between the
    migration and the upgrade a process of this version starts on the newer schema."""
    async with open_rig() as rig:
        root = await asyncio.to_thread(next_version, rig.folder)
        following = rig.processes_of(root)
        try:
            async with _under_load(rig, streams) as figures:
                await asyncio.to_thread(rig.migrate, root)
                await _replace(rig.processes[0], rig.processes[0], figures)
                versions = [rig.processes, following]
                for number in range(_UPGRADES):
                    for old, new in zip(versions[number % 2], versions[(number + 1) % 2], strict=True):
                        await _replace(old, new, figures)
        finally:
            for process in following:
                process.end()
    return figures


async def _replace(old: ServiceProcess, new: ServiceProcess, figures: Figures) -> None:
    if code := await asyncio.to_thread(old.stop):
        figures.failed.append(f"a process ended with {code}: {old.text[-500:]}")
    await asyncio.to_thread(new.start)
    figures.restarts += 1
    await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def _under_load(rig: Rig, streams: int) -> AsyncIterator[Figures]:
    """Keep this many streams open, message upon message, and count; end with the streams' last answers."""
    figures, ended = Figures(), asyncio.Event()

    async def talk(number: int, client: httpx.AsyncClient) -> None:
        await asyncio.sleep(number * len(ANSWER) * _GAP_S / streams)
        for count in itertools.count():
            if ended.is_set():
                return
            wrong = await _one_turn(client, {"user_id": f"u-{number}", "session_id": "s", "message": f"n {count}"})
            if wrong is None:
                figures.completed += 1
            else:
                figures.failed.append(wrong)

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=streams)
    async with httpx.AsyncClient(base_url=rig.address, timeout=60, limits=limits) as client:
        talking = [asyncio.create_task(talk(number, client)) for number in range(streams)]
        await asyncio.sleep(len(ANSWER) * _GAP_S)
        try:
            yield figures
        finally:
            ended.set()
            await asyncio.gather(*talking)


async def _one_turn(client: httpx.AsyncClient, body: dict[str, str]) -> str | None:
    """Send a message once; return what went wrong, if anything did."""
    try:
        async with client.stream("POST", "/api/v1/chat/stream", json=body) as response:
            if response.status_code != httpx.codes.OK:
                return f"{response.status_code} {(await response.aread()).decode()}"
            lines = [line async for line in response.aiter_lines()]
        answer = answer_of(list(events_of(iter(lines))))
    except (httpx.HTTPError, AssertionError) as error:
        return f"{type(error).__name__} {error}"
    return None if answer == "".join(ANSWER) else f"answered {answer!r}"
