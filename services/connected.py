"""Connections of a process to stores and models."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from services.engines import Engines, make_database
from services.identity.authentication import Authenticator
from services.jobs.queue import JobQueue, WorkerTimings
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.platform import redis
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from services.usage.ledger import UsageLedger


@dataclass(frozen=True)
class Connected:
    """Connections to stores and models, closed at the end."""

    database: Database
    cache: RedisClient
    milvus: Milvus
    models: ChatModels
    embedder: Embedder
    authenticator: Authenticator
    jobs: JobQueue
    usage: UsageLedger


async def connect(stack: AsyncExitStack, settings: Settings, engines: Engines) -> Connected:
    """Connect to the stores and the models; `stack` closes the connections.

    Raises:
        ConfigurationError: the database's role or schema is not what the service needs.
    """
    database = make_database(settings, engines.database_url, engines.direct_url)
    stack.push_async_callback(database.close)
    await database.open()
    cache = redis.connect(settings.redis_url)
    stack.push_async_callback(redis.close, cache)
    milvus = Milvus(engines.milvus_uri, settings.milvus_token, engines.standby)
    stack.push_async_callback(milvus.close)
    models, embedder = await asyncio.to_thread(lambda: (ChatModels(settings), Embedder.of(settings)))
    stack.push_async_callback(models.close)
    stack.push_async_callback(embedder.close)
    authenticator = Authenticator(settings, database)
    stack.push_async_callback(authenticator.close)
    usage = UsageLedger(database)
    usage.open()
    stack.push_async_callback(usage.close)
    delays = (4 * settings.memory_filing_quiet_s, settings.memory_filing_pause_s, settings.turn_events_keep_s)
    timings = WorkerTimings(longest_delay_s=max(delays) + 5 * 60)
    jobs = JobQueue(database, timings=timings, meter=usage.meter, at_once=settings.worker_jobs)
    stack.push_async_callback(jobs.close)
    await jobs.open()
    return Connected(database, cache, milvus, models, embedder, authenticator, jobs, usage)
