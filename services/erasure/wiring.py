"""Erasure and retention alone, for commands that need nothing else of the service."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.engines import direct_url, make_database
from services.erasure.erasure import Erasure
from services.erasure.spaces import SpaceErasure
from services.erasure.stores import ErasureStores
from services.erasure.traces import Traces
from services.identity.tenants import Tenants
from services.jobs.queue import JobQueue
from services.memory.cache import CoreMemoryCache
from services.memory.episodes.index import EpisodeIndex
from services.memory.operations import OperationLog
from services.platform import redis
from services.platform.breaker import CircuitBreaker
from services.platform.milvus import Milvus
from services.platform.settings import Settings


@asynccontextmanager
async def open_erasure(
    settings: Settings, database_url: str, milvus_uri: str
) -> AsyncIterator[tuple[Tenants, Erasure, SpaceErasure]]:
    """Connect to the stores that hold something of users, for a command that erases one, or a space.

    Raises:
        ConfigurationError, DatabaseUnavailable: as `open_stores`.
    """
    async with open_stores(settings, database_url, milvus_uri) as stores:
        yield Tenants(stores.database), Erasure(stores), SpaceErasure(stores)


@asynccontextmanager
async def open_stores(settings: Settings, database_url: str, milvus_uri: str) -> AsyncIterator[ErasureStores]:
    """Connect to the stores that hold something of users.

    Raises:
        ConfigurationError: the database's role or schema is not what the service needs.
        DatabaseUnavailable: the database does not answer.
    """
    async with AsyncExitStack() as stack:
        database = make_database(settings, database_url, direct_url(settings))
        stack.push_async_callback(database.close)
        await database.open()
        cache = redis.connect(settings.redis_url)
        stack.push_async_callback(redis.close, cache)
        jobs = JobQueue(database)
        await jobs.open()
        keep_s = settings.turn_events_keep_s
        events = EventLog(cache, CircuitBreaker("Redis"), keep_s=keep_s)
        core_cache = CoreMemoryCache(cache, CircuitBreaker("Redis"))
        milvus = Milvus(milvus_uri, settings.milvus_token)
        stack.push_async_callback(milvus.close)
        index = EpisodeIndex(milvus, model="", dimension=0)  # it only removes
        traces = Traces(events, core_cache)
        yield ErasureStores(
            database, TurnLeases(database), traces, index, OperationLog(database), jobs, events_keep_s=keep_s
        )
