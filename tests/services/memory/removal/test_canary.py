"""What a user said is in no file any more, byte for byte; only the write-ahead log is not looked at."""

import asyncio
import base64
import random
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import tuple_row
from pydantic import SecretStr

from services.bootstrap import Services, open_services
from services.conversations.turns import Turns
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.episodes.index import NAME, shard_of
from services.memory.removal.tables import scrub
from services.platform import redis
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.postgres import Database
from services.platform.settings import load_settings
from services.text.tokenizer import terms
from tests.support.milvus_server import MilvusServer, files_with_rows, of_user
from tests.support.turns import exchange, new_turn, remember

pytestmark = [pytest.mark.process, pytest.mark.own_milvus]

CANARY = "kanarienvogel-7f3a"


def _as_postgres(server: EmbeddedPostgres, *statements: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def _files_with(folder: Path, text: str) -> list[str]:
    """Files below the folder that hold the text, without the write-ahead log."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "pg_wal" not in path.parts and text.encode() in path.read_bytes()
    ]


def _relations(server: EmbeddedPostgres, files: list[str]) -> set[str]:
    """Names of the tables and indexes that these files belong to."""
    numbers = [int(name) for file in files if (name := file.rsplit("/", 1)[-1]).isdigit()]
    with psycopg.connect(server.url("postgres")) as connection:
        rows = connection.execute(
            "SELECT pg_filenode_relation(0, n)::regclass::text FROM unnest(%s::oid[]) n", [numbers]
        )
        return {row[0] for row in rows.fetchall()}


async def _tell(database: Database) -> list[str]:
    """Two users talk in turns, so that their rows share pages; return the keys of the first one's events."""
    turns = Turns(database, JobQueue(database))
    # Too long for its row and not to be compressed: it goes to the TOAST table as it is.
    long = CANARY + base64.b64encode(random.Random(1).randbytes(12_000)).decode()
    keys = []
    for number in range(20):
        said = f"{CANARY} {number}" if number else long
        turn = await exchange(
            turns, said, f"You said {said}", user_id=f"u.{CANARY}", session_id=f"{CANARY}-{number}"
        )
        await remember(database, turn, said)
        keys.append(f"turn:{turn.turn_id}:events")
        await exchange(turns, f"Hello {number}", "Hi", user_id="u-2", session_id=f"s-{number}")
    values = {"user_id": f"u.{CANARY}", "session_id": f"{CANARY}-0", "images": [f"https://x.test/{CANARY}"]}
    running = await turns.open(new_turn("And now?", **values))
    async with database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE users SET display_name = %s WHERE external_id <> 'u-2'", [CANARY])
        await connection.execute(
            "UPDATE turns SET idempotency_key = %s, request = to_jsonb(%s::text), error = to_jsonb(%s::text)"
            " WHERE id = %s",
            [CANARY, CANARY, CANARY, running.turn_id],
        )
    return [*keys, f"turn:{running.turn_id}:events"]


async def test_nothing_that_an_erased_user_said_stays_in_a_file(
    server: EmbeddedPostgres, redis_server: str, milvus_uri: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = Path(server._parent)
    settings = load_settings(redis_url=SecretStr(redis_server))
    database, cache = Database(server.url(SERVICE_ROLE)), redis.connect(settings.redis_url)
    await database.open()
    for key in await _tell(database):
        await cache.xadd(key, {"data": CANARY})
    await database.close()
    await asyncio.to_thread(_as_postgres, server, "ANALYZE", "CHECKPOINT")
    told = _relations(server, await asyncio.to_thread(_files_with, folder, CANARY))
    assert told >= {"users", "conversations", "messages", "turns", "users_tenant_id_external_id_key"}
    assert any(name.startswith("pg_toast.") for name in told)
    assert "pg_statistic" not in told

    async with open_services(settings, Engines(server.url(SERVICE_ROLE), None, milvus_uri)) as services:
        erased = await services.erasure.user(DEFAULT_TENANT, f"u.{CANARY}")
    assert erased.removed["redis"] == {"turn_events": 21}
    left = [await cache.dump(key) for key in await cache.keys()]
    assert left == []
    await cache.aclose()

    # Why there is `--scrub`: the bytes of deleted rows stay in pages that living rows share with them.
    await asyncio.to_thread(_as_postgres, server, "VACUUM", "CHECKPOINT")
    left_by_vacuum = _relations(server, await asyncio.to_thread(_files_with, folder, CANARY))
    assert left_by_vacuum >= {"messages", "turns"}
    await scrub(server.url(OWNER_ROLE))
    assert await asyncio.to_thread(_files_with, folder, CANARY) == []
    await asyncio.to_thread(_as_postgres, server, "CHECKPOINT")
    assert await asyncio.to_thread(_files_with, folder, CANARY) == []
    assert await asyncio.to_thread(_files_with, folder, "Hello 19") != []
    assert CANARY not in "".join(capfd.readouterr())


async def test_the_servers_log_names_an_error_and_no_value(server: EmbeddedPostgres) -> None:
    folder = Path(server._parent)
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        insert = "INSERT INTO users (id, tenant_id, external_id) VALUES (gen_random_uuid(), %s, %s)"
        connection.execute(insert, [DEFAULT_TENANT, CANARY])
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(insert, [DEFAULT_TENANT, CANARY])
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(f"SELECT 1/0, '{CANARY}'")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT %s::jsonb", ['{"' + CANARY])
    log = (folder / "postgres.log").read_text()
    assert "duplicate key value violates unique constraint" in log
    assert "division by zero" in log
    assert CANARY not in log


async def test_nothing_that_an_erased_user_said_stays_in_the_index(
    services: Services, engines: Engines, milvus_server: MilvusServer
) -> None:
    word = terms(f"{CANARY}x")[-1]
    for number in range(3):
        await exchange(services.turns, f"{CANARY}x {number}", f"You said {CANARY}x", user_id="gone")
    other = await exchange(services.turns, "Stillebensmaler", "Good", user_id="kept")
    [gone_id] = await _user_ids(services.database, "gone")
    shards = {shard_of(gone_id), shard_of(other.user_id)}
    await services.memory.indexing.index_waiting()
    for shard in shards:
        await services.memory.index.vectors.flush(NAME.format(shard=shard))
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, word)

    erased = await services.erasure.user(DEFAULT_TENANT, "gone")
    assert erased.removed["milvus"] == {"units": 6}
    assert of_user(milvus_server.uri, gone_id) == {}
    # Why there is `--scrub`: what was removed stays in the files.
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, word)
    await services.erasure.scrub_index()
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, word) == []
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, str(gone_id)) == []
    assert of_user(milvus_server.uri, other.user_id).total() == 2
    milvus_server.restart()
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, word) == []
    assert of_user(milvus_server.uri, other.user_id).total() == 2


async def _user_ids(database: Database, external_id: str) -> list[UUID]:
    statement = "SELECT id FROM users WHERE external_id = %(id)s"
    rows = await database.fetch(DEFAULT_TENANT, statement, {"id": external_id}, tuple_row)
    return [row[0] for row in rows]
