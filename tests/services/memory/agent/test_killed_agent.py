"""A worker that is killed while the memory agent is at a turn: the next does the rest, and nothing twice."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.agent.agent import MemoryAgent
from services.memory.agent.consent import Consent
from services.memory.agent.decisions import DecisionMaker
from services.memory.agent.store import AgentStore
from services.memory.agent.triggers import REMEMBER
from services.memory.blocks import Owner
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.fork_server import ForkedProcess
from tests.support.jobs import defer, has_ended, hurried_queue, until, wait_for_line
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

_WORKER = """
import asyncio, sys
from services.bootstrap import open_services
from services.engines import Engines
from services.platform.settings import load_settings
from tests.services.memory.agent.test_killed_agent import remembering_agent
from tests.support.fork_server import ForkedProcess
from tests.support.jobs import hurried_queue

async def main():
    settings = load_settings(
        llm_model="large", small_llm_model="small", llm_base_url=sys.argv[2], llm_api_key="k", llm_timeout_s=5
    )
    engines = Engines(database_url=sys.argv[1], owner_url=sys.argv[1], milvus_uri="http://127.0.0.1:9")
    async with open_services(settings, engines) as services, hurried_queue(services.database) as jobs:
        remembering_agent(services, jobs)
        jobs.start_worker()
        print("ready", flush=True)
        await jobs.worker_ended()

asyncio.run(main())
"""


def remembering_agent(services: Services, jobs: JobQueue) -> MemoryAgent:
    """An agent that works for another queue."""
    memory = services.memory
    store = AgentStore(services.database, memory.operations)
    return MemoryAgent(
        store,
        DecisionMaker(
            services.models, store, memory.episodes, memory.core, memory.archive, memory.foreign_origins
        ),
        jobs,
        consent=Consent(store, memory.proposals),
        episodes=memory.episodes,
        core_memory=memory.core,
        archive=memory.archive,
        resolution=memory.resolution,
        retraction=memory.retraction,
        pause_s=0,
    )


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server)


@contextmanager
def _worker(engines: Engines, model_server: ModelServer) -> Iterator[ForkedProcess]:
    process = ForkedProcess("-c", _WORKER, engines.database_url, model_server.base_url, merged=True)
    try:
        wait_for_line(process, "ready")
        yield process
    finally:
        process.kill()
        process.wait(60)
        if process.stdout:
            process.stdout.close()


@pytest.mark.in_clear
@pytest.mark.parametrize(
    ("held", "asked"),
    [
        pytest.param(
            "LOCK TABLE memory_operations IN SHARE MODE",
            2,
            marks=pytest.mark.soak,
            id="between the model's answer and the plan",
        ),
        pytest.param("LOCK TABLE core_memory_blocks IN SHARE MODE", 1, id="between two operations of the plan"),
    ],
)
async def test_a_killed_worker_doubles_nothing_and_asks_at_most_once_more(
    services: Services, engines: Engines, model_server: ModelServer, held: str, asked: int
) -> None:
    operations = [
        {
            "operation": "add",
            "memory": "episode",
            "type": "decision",
            "content": "The user decided to learn Dutch.",
        },
        {"operation": "add", "memory": "core", "section": "human", "patch": {"home": "lives in Utrecht"}},
    ]
    model_server.default = Reply([json.dumps({"operations": operations})], delay_s=0.5)
    turn = await exchange(services.turns, "I moved to Utrecht and I decided to learn Dutch.", "Succes!")
    superuser = str(engines.owner_url).replace("anamnesis_owner", "postgres")
    with _worker(engines, model_server) as process, psycopg.connect(superuser) as holding:
        await defer(services.database, services.jobs, REMEMBER, turn_id=turn.turn_id)

        async def was_asked() -> bool:
            return len(model_server.requests) > 0

        async def is_blocked() -> bool:
            with psycopg.connect(superuser) as looking:
                row = looking.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                    "AND datname = current_database()"
                ).fetchone()
            return bool(row and row[0])

        await until(was_asked)
        holding.execute(held)  # while the model thinks
        await until(is_blocked)
        process.kill()
        process.wait(60)
    before = [each.type for each in await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=10)]
    assert before == ([] if asked == 2 else ["episode_insert", "memory_agent"])

    async with hurried_queue(services.database) as jobs:
        remembering_agent(services, jobs)
        jobs.start_worker()
        await until(lambda: has_ended(services.database, REMEMBER, "succeeded"))
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    (written,) = await services.memory.episodes.written(owner, limit=10)
    assert written.content == "The user decided to learn Dutch."
    (block,) = await services.memory.core.read(owner)
    assert (block.content, block.version) == ({"home": "lives in Utrecht"}, 1)
    assert len(model_server.requests) == asked
