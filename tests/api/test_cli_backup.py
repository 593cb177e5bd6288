"""`anamnesis backup` beside the busy service, and `anamnesis restore` into an empty place."""

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from services.engines import Engines
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from tests.conftest import free_port
from tests.support.command import run_command
from tests.support.milvus_server import MilvusServer
from tests.support.service_process import ServiceProcess, answer_of, chat

pytestmark = [pytest.mark.slow, pytest.mark.traced]


@pytest.mark.soak
def test_a_backup_of_the_busy_service_is_restored_elsewhere(
    service: ServiceProcess, data_dir: Path, tmp_path: Path
) -> None:
    here = {"ANAMNESIS_DATA_DIR": str(data_dir)}
    there = {"ANAMNESIS_DATA_DIR": str(tmp_path / "there")}
    answer_of(chat(service.url, "My violin teacher is called Odile."))
    busy = True

    def talk() -> None:
        while busy:
            answer_of(chat(service.url, "Another line.", user_id="u-2", session_id="s-2"))
            begun.set()

    begun = threading.Event()
    talking = threading.Thread(target=talk)
    talking.start()
    assert begun.wait(30)
    (tmp_path / "backups").mkdir()
    made = run_command("backup", str(tmp_path / "backups"), "--json", variables=here)
    busy = False
    talking.join()
    assert made.returncode == 0, made.stderr
    report = json.loads(made.stdout)
    file = Path(report["file"])
    assert (file.parent, file.stat().st_size) == (tmp_path / "backups", report["bytes"])
    told = run_command("export", "u-1", "--url", service.url, variables={})
    service.stop()

    cut = tmp_path / "cut.zip"
    cut.write_bytes(file.read_bytes()[: report["bytes"] // 2])
    refused = run_command("restore", str(cut), variables=there)
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert f"anamnesis: {cut}: is not a whole backup" in refused.stderr
    assert not (tmp_path / "there").exists()

    restored = run_command("restore", str(file), variables=there)
    assert restored.returncode == 0, restored.stderr
    assert f"Restored the backup of {report['made_at']}: 2 users, 2 conversations" in restored.stdout
    assert "Indexed " in restored.stdout
    elsewhere = ServiceProcess(tmp_path / "there", free_port()).start()
    at = {"ANAMNESIS_URL": elsewhere.url}
    assert run_command("export", "u-1", variables=at).stdout == told.stdout
    found = run_command("memory", "search", "u-1", "Who teaches me the violin?", "--json", variables=at)
    elsewhere.stop()
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert ("Odile" in answer["items"][0]["content"], answer["degraded"]) == (True, [])

    again = run_command("restore", str(file), variables=there)
    assert (again.returncode, again.stdout) == (1, "")
    assert "The database holds data (2 users)" in again.stderr
    kept = run_command("restore", str(file), "--replace", variables=there, typed="n\n")
    assert (kept.returncode, "Permanently replace everything" in kept.stderr) == (1, True)
    replaced = run_command("restore", str(file), "--replace", "--yes", "--json", variables=there)
    assert replaced.returncode == 0, replaced.stderr
    assert json.loads(replaced.stdout)["rows"] == report["rows"]


def test_a_running_service_is_not_restored_into(service: ServiceProcess, data_dir: Path, tmp_path: Path) -> None:
    here = {"ANAMNESIS_DATA_DIR": str(data_dir)}
    file = tmp_path / "b.zip"
    made = run_command("backup", str(file), variables=here)
    assert made.returncode == 0, made.stderr
    assert f"{file} (" in made.stdout
    taken = run_command("backup", str(file), variables=here)
    assert (taken.returncode, taken.stderr.splitlines()[-1]) == (
        2,
        f"anamnesis: {file}: there is such a file already",
    )
    refused = run_command("restore", str(file), "--replace", "--yes", variables=here)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Stop the service, and restore again." in refused.stderr


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """Name of a database without any table."""
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        identifier = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(identifier, sql.Identifier(OWNER_ROLE)))
        yield name
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


@pytest.mark.soak
def test_a_backup_of_busy_external_stores_is_restored_into_empty_ones(
    engines: Engines,
    postgres: EmbeddedPostgres,
    empty_database: str,
    redis_server: str,
    milvus_server: MilvusServer,
    tmp_path: Path,
) -> None:
    other_milvus = MilvusServer(tmp_path / "other-milvus")
    here: dict[str, Any] = {
        "database_url": engines.database_url,
        "redis_url": redis_server,
        "milvus_uri": milvus_server.uri,
    }
    there: dict[str, Any] = {
        "database_url": postgres.url(SERVICE_ROLE, empty_database),
        "redis_url": redis_server.removesuffix("0") + "1",
        "milvus_uri": other_milvus.uri,
    }
    process = ServiceProcess(tmp_path / "data", free_port(), **here)
    said: list[str] = []
    enough, ended = threading.Event(), threading.Event()

    def talk(number: int) -> None:
        for count in itertools.count():
            if ended.is_set():
                return
            message = f"My locker {number}-{count} holds a violin."
            answer_of(chat(process.url, message, user_id=f"u-{number}", session_id="s"))
            said.append(message)
            if len(said) >= 12:
                enough.set()

    file = tmp_path / "backup.zip"
    process.start()
    with ThreadPoolExecutor(4) as pool:
        talking = [pool.submit(talk, number) for number in range(4)]
        assert enough.wait(60)
        before = list(said)
        made = run_command("backup", str(file), variables=_settings(here))
        ended.set()
        for each in talking:
            each.result()
    process.stop()
    assert made.returncode == 0, made.stderr
    assert len(said) > len(before)  # it was busy

    other_milvus.start()
    owner = postgres.url(OWNER_ROLE, empty_database)
    variables = _settings({**there, "migration_database_url": owner})
    restored = run_command("restore", str(file), variables=variables)
    assert restored.returncode == 0, restored.stderr
    with psycopg.connect(postgres.url("postgres", empty_database)) as connection:
        kept = {row[0] for row in connection.execute("SELECT content FROM messages WHERE role = 'user'")}
        halves = connection.execute(
            "SELECT count(*) FROM turns t LEFT JOIN messages m ON m.id = t.assistant_message_id"
            " WHERE t.status = 'completed' AND m.id IS NULL"
        ).fetchone()
    assert set(before) <= kept
    assert halves == (0,)
    again = ServiceProcess(tmp_path / "again", free_port(), **there).start()
    answer_of(chat(again.url, "What does locker 1-0 hold?", user_id="u-1", session_id="new"))
    found = run_command("memory", "search", "u-1", "locker 1-0", "--json", "--url", again.url, variables={})
    again.stop()
    other_milvus.stop()
    answer = json.loads(found.stdout)
    assert ("1-0" in answer["items"][0]["content"], answer["degraded"]) == (True, [])


def _settings(values: Mapping[str, Any]) -> dict[str, str]:
    return {f"ANAMNESIS_{name.upper()}": value for name, value in values.items()}
