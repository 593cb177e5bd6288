"""A worker that is killed around the write of a summary: the state is right, and the model is asked once more."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import psycopg
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.summaries.rolling_summaries import RollingSummaries
from services.summaries.schedule import SUMMARISE, SummarySchedule
from services.summaries.store import SummaryStore
from services.summaries.writer import SummaryWriter
from tests.support.fork_server import ForkedProcess
from tests.support.jobs import HURRIED, defer, has_ended, until, wait_for_line
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.untraced]

_WORKER = """
import asyncio, sys
from tests.services.summaries.test_killed_worker import summarising_queue
from services.platform.postgres import Database
from services.platform.settings import load_settings

async def main():
    settings = load_settings(llm_model="scripted", llm_base_url=sys.argv[2], llm_api_key="k")
    database = Database(sys.argv[1])
    await database.open()
    async with summarising_queue(settings, database) as jobs:
        jobs.start_worker()
        print("ready", flush=True)
        await jobs.worker_ended()

asyncio.run(main())
"""


@asynccontextmanager
async def summarising_queue(settings: Settings, database: Database) -> AsyncIterator[JobQueue]:
    """A queue in a hurry that renews summaries."""
    jobs = JobQueue(database, timings=HURRIED)
    await jobs.open()
    models = ChatModels(settings)
    writer = SummaryWriter(models, most_tokens=500)
    RollingSummaries(SummaryStore(database), writer, SummarySchedule(), jobs, chunk_tokens=8000)
    try:
        yield jobs
    finally:
        await jobs.close()
        await models.close()


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
            "SELECT FROM conversations FOR UPDATE",
            2,
            marks=pytest.mark.soak,
            id="between the model's answer and the write",
        ),
        pytest.param(
            f"SELECT FROM procrastinate_jobs WHERE task_name = '{SUMMARISE}' FOR UPDATE",
            1,
            id="between the write and its acknowledgement",
        ),
    ],
)
async def test_a_killed_worker_loses_nothing_and_asks_at_most_once_more(
    services: Services,
    settings: Settings,
    engines: Engines,
    model_server: ModelServer,
    held: str,
    asked: int,
) -> None:
    model_server.default = Reply(["They talk."], delay_s=0.5)
    for number in range(5):
        turn = await exchange(services.turns, f"question {number}", "answer")
    store = services.summaries.store
    with (
        _worker(engines, model_server) as process,
        psycopg.connect(
            str(engines.owner_url).replace("anamnesis_owner", "postgres"), autocommit=False
        ) as holding,
    ):
        await defer(services.database, services.jobs, SUMMARISE, conversation_id=turn.conversation_id)

        async def was_asked() -> bool:
            return len(model_server.requests) > 0

        async def is_blocked() -> bool:
            with psycopg.connect(str(engines.owner_url).replace("anamnesis_owner", "postgres")) as looking:
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
    written = await store.get(DEFAULT_TENANT, turn.conversation_id)
    assert (written is None) == (asked == 2)

    async with summarising_queue(settings, services.database) as jobs:
        jobs.start_worker()
        await until(lambda: has_ended(services.database, SUMMARISE, "succeeded"))
    summary = await store.get(DEFAULT_TENANT, turn.conversation_id)
    assert summary is not None
    assert (summary.summary, summary.summary_version, summary.covered_message_count) == ("They talk.", 1, 4)
    assert len(model_server.requests) == asked
