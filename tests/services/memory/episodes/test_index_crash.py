"""A process that dies between writing into Milvus and noting it in PostgreSQL."""

import asyncio
import signal
import time

import psycopg
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from tests.support.fork_server import ROOT, ForkedProcess
from tests.support.jobs import until
from tests.support.milvus_server import MilvusServer, of_user
from tests.support.turns import exchange

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.untraced,
    pytest.mark.own_milvus,
    pytest.mark.settings(embedding_model="scripted-embeddings", embedding_dim=8),
]

_INDEX_AND_HANG = """
import asyncio, sys
from services.bootstrap import open_services
from services.engines import Engines
from services.platform.settings import load_settings

async def main():
    engines = Engines(sys.argv[1], None, sys.argv[2])
    async with open_services(load_settings(), engines) as services:
        print("ready", flush=True)
        await services.memory.indexing.index_waiting()
        print("indexed", flush=True)

asyncio.run(main())
"""


async def _unindexed(services: Services) -> int:
    statement = "SELECT count(*) FROM episodes WHERE indexed_at IS NULL"
    rows = await services.database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)
    return int(rows[0][0])


@pytest.mark.in_clear
async def test_a_process_that_dies_between_milvus_and_postgresql_leaves_nothing_twice(
    services: Services, engines: Engines, milvus_server: MilvusServer, settings: Settings
) -> None:
    turns = [await exchange(services.turns, f"My dog is Bruno {n}", "A good dog") for n in range(3)]
    await services.memory.indexing.index_waiting()
    await services.memory.episodes.index_again(DEFAULT_TENANT, turns[0].user_id)
    async with services.database.pool.connection() as holding, holding.transaction():
        await holding.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        # The rows are locked, so that the mark has to wait behind what was written into Milvus.
        await holding.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [str(DEFAULT_TENANT)])
        await holding.execute("SELECT 1 FROM episodes FOR UPDATE")
        process = await asyncio.to_thread(_process, engines, settings)
        await asyncio.to_thread(_until_it_marks, engines)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.communicate)
    assert await _unindexed(services) == len(turns)
    expected = dict.fromkeys((m for t in turns for m in (t.user_message_id, t.answer_message_id)), 1)
    assert of_user(milvus_server.uri, turns[0].user_id) == expected

    async def indexed_again() -> bool:
        await services.memory.indexing.index_waiting()
        return await _unindexed(services) == 0

    await until(indexed_again)
    assert of_user(milvus_server.uri, turns[0].user_id) == expected


def _process(engines: Engines, settings: Settings) -> ForkedProcess:
    assert settings.llm_base_url
    process = ForkedProcess(
        "-c",
        _INDEX_AND_HANG,
        engines.database_url,
        engines.milvus_uri,
        environment={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "ANAMNESIS_LLM_MODEL": "scripted",
            "ANAMNESIS_LLM_BASE_URL": settings.llm_base_url,
            "ANAMNESIS_EMBEDDING_MODEL": "scripted-embeddings",
            "ANAMNESIS_EMBEDDING_DIM": "8",
        },
        merged=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def _until_it_marks(engines: Engines) -> None:
    assert engines.owner_url
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    with psycopg.connect(engines.owner_url, autocommit=True) as connection:
        end = time.monotonic() + 60
        while connection.execute(waits).fetchone() == (0,):
            assert time.monotonic() < end
            time.sleep(0.05)
