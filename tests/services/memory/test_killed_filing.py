"""A worker that is killed while it files: nothing is done by halves, and the next worker does all of it once."""

import psycopg
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.memory.waiting import FILE_MEMORY, defer_filing
from tests.support.filing import add, asked, filed, filing_for, human, logged, written
from tests.support.jobs import has_ended, hurried_queue, running_worker, until, waits_for_a_lock
from tests.support.model_server import ModelServer
from tests.support.turns import exchange

pytestmark = [pytest.mark.slow, pytest.mark.settings(llm_model="large", small_llm_model="small")]

_WORKER = """
import asyncio, sys
from services.bootstrap import open_services
from services.engines import Engines
from services.platform.settings import load_settings
from tests.support.filing import filing_for
from tests.support.jobs import hurried_queue

async def main():
    settings = load_settings(
        llm_model="large", small_llm_model="small", llm_base_url=sys.argv[2], llm_api_key="k", llm_timeout_s=60
    )
    engines = Engines(database_url=sys.argv[1], owner_url=sys.argv[1], milvus_uri="http://127.0.0.1:9")
    async with open_services(settings, engines) as services, hurried_queue(services.database) as jobs:
        filing_for(services, jobs)
        jobs.start_worker()
        print("ready", flush=True)
        await jobs.worker_ended()

asyncio.run(main())
"""


@pytest.mark.in_clear
async def test_a_killed_worker_doubles_nothing_and_leaves_nothing_half_done(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    model_server.default = filed(
        add("has decided to learn Dutch", "I decided to learn Dutch", "events"),
        add("lives in Utrecht", "I moved to Utrecht", "home"),
    )
    turn = await exchange(services.turns, "I moved to Utrecht and I decided to learn Dutch.", "Succes!")
    superuser = str(engines.owner_url).replace("anamnesis_owner", "postgres")
    with (
        running_worker(_WORKER, engines.database_url, model_server.base_url) as process,
        psycopg.connect(superuser) as holding,
    ):
        # The second change waits, the first is made.
        holding.execute("LOCK TABLE core_memory_blocks IN SHARE MODE")
        async with services.database.tenant(turn.tenant_id) as connection:
            await defer_filing(services.jobs, connection, turn.tenant_id, turn.user_id, delay_s=0)

        await until(lambda: waits_for_a_lock(services.database))
        process.kill()
        process.wait(60)
    assert await logged(services) == []
    assert await written(services) == []

    async with hurried_queue(services.database) as jobs:
        filing_for(services, jobs)
        jobs.start_worker()
        await until(lambda: has_ended(services.database, FILE_MEMORY, "succeeded"))
    assert await human(services, turn) == {"home": "lives in Utrecht"}
    assert await written(services) == ["has decided to learn Dutch"]
    assert len([each for each in await logged(services) if each.type == "memory_filing"]) == 1
    assert len(asked(model_server)) == 2, "once for each worker"
