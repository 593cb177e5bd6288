import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil
import psycopg
import pytest

from services.errors import ConfigurationError, Unavailable
from services.platform import child_process
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from tests.conftest import UNSAFE_BUT_FAST
from tests.support.jobs import until

pytestmark = [pytest.mark.process, pytest.mark.untraced]

ROOT = Path(__file__).parents[3]

_START_AND_HANG = """
import asyncio, sys, time
from pathlib import Path
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.embedded_milvus import EmbeddedMilvus
folder = Path(sys.argv[1])
postgres, milvus = EmbeddedPostgres(folder), EmbeddedMilvus(folder)
milvus.launch()
milvus._spawn()
asyncio.run(postgres.start())
asyncio.run(milvus.wait())
print("started", flush=True)
time.sleep(60)
"""


def _postgres(folder: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(folder, options=UNSAFE_BUT_FAST)


async def test_a_server_starts_stops_and_keeps_its_data(tmp_path: Path) -> None:
    for expected in (0, 1):
        server = _postgres(tmp_path)
        await server.start()
        beside = _postgres(tmp_path)  # of a second process, which does not stop what it found running
        await beside.start()
        assert beside.url("postgres") == server.url("postgres")
        await beside.stop()
        with psycopg.connect(server.url("postgres", "postgres"), autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (expected,)
            connection.execute("INSERT INTO kept VALUES (1)")
        await server.stop()
        assert not (tmp_path / "postgres" / "postmaster.pid").exists()


async def test_a_closed_folder_of_any_name_works_also_after_a_start_that_was_cut_off(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    folder = closed / ("a-long-folder-name-" * 6) / "数据 100% a?b&c=d#e'\"" / "data"
    half = folder / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18")
    server = _postgres(folder)
    await server.start()
    assert not half.exists()
    if os.geteuid() == 0:
        assert closed.stat().st_mode & 0o777 == 0o701, "the server's account may only pass through"
    migrate(server.url(OWNER_ROLE), SERVICE_ROLE)
    database = Database(server.url(SERVICE_ROLE))
    await database.open()
    assert await database.ping() > 0
    await database.close()
    await server.stop()


async def test_damaged_data_are_reported_with_the_servers_own_words(tmp_path: Path) -> None:
    server = _postgres(tmp_path)
    await server.start()
    await server.stop()
    (tmp_path / "postgres" / "PG_VERSION").write_text("9\n")
    with pytest.raises(ConfigurationError, match=r"does not start\. Its log says:(.|\n)*incompatible"):
        await _postgres(tmp_path).start()


def _names(processes: Iterable[psutil.Process]) -> set[str]:
    """Names of those that still run: PostgreSQL's workers come and go."""
    found = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.add(process.name())
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's death signal is Linux's")
def test_a_service_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _START_AND_HANG, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    ) as program:
        assert program.stdout
        assert b"started\n" in iter(program.stdout.readline, b"")
        children = psutil.Process(program.pid).children(recursive=True)
        assert "postgres" in _names(children)
        program.send_signal(signal.SIGKILL)
    assert child_process.wait_until(lambda: not any(_alive(child) for child in children), seconds=60)


async def test_milvus_starts_answers_and_stops(tmp_path: Path) -> None:
    server = EmbeddedMilvus(tmp_path)
    server.launch()
    await server.wait()
    client = Milvus(server.uri)
    assert await client.ping() > 0
    again = EmbeddedMilvus(tmp_path)
    again.launch()
    assert again.uri == server.uri
    await again.stop()
    assert await client.ping() > 0

    note = server.standby.read()  # its keeper dies, and it is still ending when the next one comes
    server.standby.note.write_text(json.dumps(note | {"since": 1.0}))
    after = EmbeddedMilvus(tmp_path)
    after.launch()
    assert after.uri != server.uri
    assert not child_process.is_running(note["pid"], str(tmp_path / "milvus"))
    await after.wait()
    later = Milvus(after.uri)
    assert await later.ping() > 0
    await later.close()
    await after.stop()
    await server.stop()
    with pytest.raises(Unavailable):
        await client.ping()
    await client.close()


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_milvus_that_dies_is_started_again_on_its_port_until_it_is_stopped(tmp_path: Path) -> None:
    server = EmbeddedMilvus(tmp_path)
    server.launch()
    await server.wait()
    supervising = asyncio.create_task(server.supervise())
    client = Milvus(server.uri)
    assert await client.ping() > 0
    first = json.loads((tmp_path / "milvus.json").read_text())["pid"]
    os.kill(first, signal.SIGKILL)

    async def answers() -> bool:
        with contextlib.suppress(Unavailable):
            return not psutil.pid_exists(first) and await client.ping() > 0
        return False

    await until(answers)
    last = json.loads((tmp_path / "milvus.json").read_text())["pid"]
    assert last != first
    await client.close()
    # Stopped while it is being started again: that one is stopped too.
    os.kill(last, signal.SIGKILL)
    supervising.cancel()
    await server.stop()
    assert not (tmp_path / "milvus.json").exists()
    folder = str(tmp_path / "milvus")
    assert [
        process.pid for process in psutil.process_iter() if child_process.is_running(process.pid, folder)
    ] == []


async def test_milvus_that_dies_while_it_starts_is_started_again_and_is_not_waited_for_at_the_end(
    tmp_path: Path,
) -> None:
    server = EmbeddedMilvus(tmp_path)
    server.launch()
    supervising = asyncio.create_task(server.supervise())
    client = Milvus(server.uri, standby=server.standby)
    server.standby.need()
    a_moment_ago = time.time() - 0.5  # as the clock of files may be behind
    os.utime(server.standby.needed, (a_moment_ago, a_moment_ago))

    async def is_starting() -> bool:
        return server.standby.read()["pid"] is not None

    await until(is_starting)
    os.kill(first := server.standby.read()["pid"], signal.SIGKILL)

    async def answers() -> bool:
        with contextlib.suppress(Unavailable):
            return server.standby.read()["pid"] != first and await client.ping() > 0
        return False

    await until(answers)
    await client.close()

    os.kill(server.standby.read()["pid"], signal.SIGKILL)

    async def is_closed() -> bool:  # it still accepts connections until its last thread has ended
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", int(server.uri.rpartition(":")[2]))) != 0

    await until(is_closed)
    waiting = asyncio.create_task(server.wait())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await server.stop()
        with pytest.raises(ConfigurationError, match="does not start"):
            await waiting
    supervising.cancel()


async def test_milvus_sleeps_until_it_is_needed_and_is_started_again_when_it_has_grown(tmp_path: Path) -> None:
    server = EmbeddedMilvus(tmp_path, unused_s=0.02)
    server.launch()
    supervising = asyncio.create_task(server.supervise())
    standby = server.standby
    assert standby.is_empty
    client = Milvus(server.uri, standby=standby)
    assert await client.is_lite()  # known without asking
    assert (standby.is_running, standby.read()["pid"]) == (False, None)
    beside = EmbeddedMilvus(tmp_path)  # of a command that runs beside the service
    beside.launch()
    assert beside.uri == server.uri

    assert await client.ping() > 0
    first = standby.read()["pid"]
    assert standby.is_running
    assert psutil.pid_exists(first)

    server._large_bytes = 1  # only now: where it starts slowly, it would be due again at once

    async def has_shrunk() -> bool:
        return standby.read()["pid"] not in {first, None}

    async def is_running() -> bool:
        return standby.is_running

    await until(has_shrunk)
    assert not psutil.pid_exists(first)
    server._large_bytes = 1 << 40
    await until(is_running)
    assert await client.ping() > 0
    await client.close()
    await beside.stop()
    assert standby.is_running
    supervising.cancel()
    await server.stop()
    assert not standby.is_running


async def test_postgresql_that_dies_is_started_again_until_it_is_stopped(tmp_path: Path) -> None:
    server = _postgres(tmp_path)
    await server.start()
    supervising = asyncio.create_task(server.supervise())
    note = tmp_path / "postgres" / "postmaster.pid"
    first = int(note.read_text().split("\n", 1)[0])
    os.kill(first, signal.SIGKILL)

    async def answers() -> bool:
        with contextlib.suppress(psycopg.OperationalError, OSError):
            psycopg.connect(server.url("postgres", "postgres")).close()
            return int(note.read_text().split("\n", 1)[0]) != first
        return False

    await until(answers)
    supervising.cancel()
    await server.stop()
    folder = str(tmp_path / "postgres")
    assert [
        process.pid for process in psutil.process_iter() if child_process.is_running(process.pid, folder)
    ] == []


async def test_nobody_else_gets_milvus_port_while_it_starts_or_is_away(tmp_path: Path) -> None:
    server = EmbeddedMilvus(tmp_path)
    server.launch()
    address = ("127.0.0.1", int(server.uri.rpartition(":")[2]))
    try:
        for moment in ("before it listens", "after it has died"):
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="in use"):
                    other.bind(address)
            if moment == "before it listens":
                await server.wait()
                assert server._process
                server._process.kill()
                server._process.wait(60)
        server._spawn()
        await server.wait()
    finally:
        await server.stop()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(address)
