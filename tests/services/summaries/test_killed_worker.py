"""A worker that is killed around the write of a summary: the state is right, and the model is asked once more."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
from tests.support.jobs import HURRIED, defer, has_ended, running_worker, until, waits_for_a_lock
from tests.support.model_server import ModelServer, Received, Reply
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
    may_answer = threading.Event()

    def answer(_: Received) -> Reply:
        may_answer.wait(60)
        return Reply(["They talk."])

    model_server.default = answer
    for number in range(5):
        turn = await exchange(services.turns, f"question {number}", "answer")
    store = services.summaries.store
    with (
        running_worker(_WORKER, engines.database_url, model_server.base_url) as process,
        psycopg.connect(
            str(engines.owner_url).replace("anamnesis_owner", "postgres"), autocommit=False
        ) as holding,
    ):
        await defer(services.database, services.jobs, SUMMARISE, conversation_id=turn.conversation_id)

        await model_server.asked()
        holding.execute(held)
        may_answer.set()
        await until(lambda: waits_for_a_lock(services.database))
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
