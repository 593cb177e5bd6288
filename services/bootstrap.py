"""Everything that works, made once and closed in reverse: by the server, the worker, Studio and the tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog
from langchain_core.embeddings import Embeddings
from redis.asyncio import Redis

from services.context.prompt import ContextBudget
from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.conversations.transcript import Transcript
from services.conversations.turns import Turns
from services.erasure.erasure import Erasure
from services.identity.authentication import Authenticator
from services.identity.rate_limits import RateLimits
from services.identity.tenants import Tenants
from services.jobs.queue import JobQueue
from services.knowledge.search import KnowledgeSearch
from services.llm.chat_models import ChatModels
from services.llm.embeddings import make_embeddings
from services.platform import redis
from services.platform.breaker import CircuitBreaker
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate, role_of
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.tools.executor import ToolExecutor
from services.tools.registry import ToolRegistry

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Services:
    """What the nodes and the API are given; each takes the few that it names."""

    settings: Settings
    authenticator: Authenticator
    rate_limits: RateLimits
    database: Database
    redis: Redis
    milvus: Milvus
    models: ChatModels
    embeddings: Embeddings
    turns: Turns
    leases: TurnLeases
    events: EventLog
    transcript: Transcript
    knowledge: KnowledgeSearch
    tools: ToolRegistry
    tool_executor: ToolExecutor
    budget: ContextBudget
    jobs: JobQueue
    erasure: Erasure


@dataclass(frozen=True)
class Engines:
    """Where the stores are."""

    database_url: str
    owner_url: str | None
    """The tables' owner; None when the operator migrates by hand."""
    milvus_uri: str


@asynccontextmanager
async def open_engines(settings: Settings) -> AsyncIterator[Engines]:
    """Start what is embedded; stop it at the end.

    Raises:
        ConfigurationError: an engine cannot be started.
    """
    async with AsyncExitStack() as stack:
        milvus_uri = settings.milvus_uri or await _embedded_milvus(settings, stack)
        database_url, owner_url = await stack.enter_async_context(open_postgres(settings))
        yield Engines(database_url, owner_url, milvus_uri)


@asynccontextmanager
async def open_postgres(settings: Settings) -> AsyncIterator[tuple[str, str | None]]:
    """Addresses of the database for the service and, where it is known, for the tables' owner."""
    if settings.database_url is not None:
        owner = settings.migration_database_url
        yield settings.database_url.get_secret_value(), owner.get_secret_value() if owner else None
        return
    postgres = EmbeddedPostgres(settings.data_dir)
    try:
        await postgres.start()
        yield postgres.url(SERVICE_ROLE), postgres.url(OWNER_ROLE)
    finally:
        await postgres.stop()


async def _embedded_milvus(settings: Settings, stack: AsyncExitStack) -> str:
    milvus = EmbeddedMilvus(settings.data_dir)
    await asyncio.to_thread(milvus.launch)
    stack.push_async_callback(milvus.stop)
    return milvus.uri


async def migrate_if_owner(engines: Engines) -> None:
    """Bring the schema up to date, where the owner's address is known.

    Raises:
        ConfigurationError: the service's role is missing.
        DatabaseUnavailable: the database does not answer.
    """
    if engines.owner_url:
        await asyncio.to_thread(migrate, engines.owner_url, role_of(engines.database_url))


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """The database alone, for what needs nothing else; migrated where the owner's address is known.

    Raises:
        ConfigurationError: the database's role or schema is not what the service needs.
        DatabaseUnavailable: the database does not answer.
    """
    async with open_postgres(settings) as (database_url, owner_url):
        if owner_url:
            await asyncio.to_thread(migrate, owner_url, role_of(database_url))
        database = Database(database_url)
        try:
            await database.open()
            yield database
        finally:
            await database.close()


@asynccontextmanager
async def open_services(settings: Settings, engines: Engines) -> AsyncIterator[Services]:
    """Connect to the stores and wire the services.

    Raises:
        ConfigurationError: the database's role or schema is not what the service needs.
        DatabaseUnavailable: the database does not answer.
    """
    async with AsyncExitStack() as stack:
        database = Database(engines.database_url)
        stack.push_async_callback(database.close)
        await database.open()
        cache = redis.connect(settings.redis_url)
        stack.push_async_callback(cache.aclose)
        milvus = Milvus(engines.milvus_uri, settings.milvus_token)
        stack.push_async_callback(milvus.close)
        models = await asyncio.to_thread(ChatModels, settings)
        stack.push_async_callback(models.close)
        authenticator = Authenticator(settings, database)
        stack.push_async_callback(authenticator.close)
        jobs = JobQueue(database)
        stack.push_async_callback(jobs.close)
        await jobs.open()
        leases = TurnLeases(database)
        events = EventLog(cache, CircuitBreaker("Redis"), keep_s=settings.turn_events_keep_s)
        tools = await asyncio.to_thread(ToolRegistry.of_builtin_tools)
        yield Services(
            settings=settings,
            authenticator=authenticator,
            rate_limits=RateLimits(settings, cache),
            database=database,
            redis=cache,
            milvus=milvus,
            models=models,
            embeddings=make_embeddings(settings),
            turns=Turns(database, jobs),
            leases=leases,
            events=events,
            transcript=Transcript(database),
            knowledge=KnowledgeSearch(),
            tools=tools,
            tool_executor=ToolExecutor(tools),
            budget=ContextBudget(settings.context_budget_tokens),
            jobs=jobs,
            erasure=Erasure(database, leases, events, jobs, events_keep_s=settings.turn_events_keep_s),
        )


@asynccontextmanager
async def open_erasure(settings: Settings, database_url: str) -> AsyncIterator[tuple[Tenants, Erasure]]:
    """Connect to the stores that hold something of users, for a command that erases one.

    Raises:
        ConfigurationError: the database's role or schema is not what the service needs.
        DatabaseUnavailable: the database does not answer.
    """
    async with AsyncExitStack() as stack:
        database = Database(database_url)
        stack.push_async_callback(database.close)
        await database.open()
        cache = redis.connect(settings.redis_url)
        stack.push_async_callback(cache.aclose)
        jobs = JobQueue(database)
        await jobs.open()
        keep_s = settings.turn_events_keep_s
        events = EventLog(cache, CircuitBreaker("Redis"), keep_s=keep_s)
        yield Tenants(database), Erasure(database, TurnLeases(database), events, jobs, events_keep_s=keep_s)
