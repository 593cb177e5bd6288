"""Services that remove what users said: forgetting with receipts, erasure, retention."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.engines import direct_url, make_database
from services.jobs.queue import JobQueue
from services.memory.blocks import Owner
from services.memory.cache import CoreMemoryCache
from services.memory.episodes.index import EpisodeIndex
from services.memory.lineage.tracing import Lineage
from services.memory.model import ChangeRequest
from services.memory.operations import OperationLog, Trigger
from services.memory.removal.erasures import Erasures
from services.memory.removal.expiry import Retention
from services.memory.removal.expiry_rules import RetentionRules
from services.memory.removal.hiding import RebuildTasks
from services.memory.removal.key_renewal import KeyRenewal
from services.memory.removal.receipts import ReceiptKey, Receipts
from services.memory.removal.stores import RemovalStores
from services.memory.removal.targets import PlanTopic, TargetPlanner
from services.memory.removal.wholes import WholeErasure
from services.memory.wiring import Memory
from services.platform import redis
from services.platform.breaker import CircuitBreaker
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.settings import Settings
from state.memory import PlannedChange


@dataclass(frozen=True)
class RemovalServices:
    """Services that remove what users said."""

    forgetting: Erasures
    erasure: WholeErasure
    retention_rules: RetentionRules
    retention: Retention


def make_removal(
    settings: Settings,
    database: Database,
    memory: Memory,
    leases: TurnLeases,
    events: EventLog,
    jobs: JobQueue,
    rebuilding: RebuildTasks,
) -> RemovalServices:
    """Wire them and register their jobs in the queue.

    Args:
        settings: of the service.
        database: where everything is stored.
        memory: whose caches and index lose what is removed.
        leases: of running turns, which are stopped before their conversation is removed.
        events: of turns, which are removed with them.
        jobs: the queue.
        rebuilding: the jobs that make again what was derived from something forgotten.
    """
    stores = RemovalStores(
        database,
        leases,
        events,
        memory.core_cache,
        memory.index,
        memory.operations,
        jobs,
        events_keep_s=settings.turn_events_keep_s,
        on_removed=memory.drop_cached,
    )
    erasure = WholeErasure(stores, shares_human=settings.memory_share_human)
    rules = RetentionRules(database)
    lineage = Lineage(database)
    forgetting = Erasures(
        stores,
        lineage,
        TargetPlanner(database, memory.values, _plan_topic(memory)),
        memory.hiding,
        Receipts(database, ReceiptKey(settings.data_dir, settings.receipt_key_file)),
        rebuilding,
        KeyRenewal(database, jobs),
    )
    return RemovalServices(
        forgetting=forgetting,
        erasure=erasure,
        retention_rules=rules,
        retention=Retention(database, rules, erasure, jobs),
    )


def _plan_topic(memory: Memory) -> PlanTopic:
    async def plan(owner: Owner, topic: str) -> PlannedChange:
        request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
        return await memory.changes.planner.plan_everything(request, topic)

    return plan


@asynccontextmanager
async def open_erasure(settings: Settings, database_url: str, milvus_uri: str) -> AsyncIterator[WholeErasure]:
    """Connect to the stores that hold something of users, for a command that rewrites them.

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
        log, leases = OperationLog(database), TurnLeases(database)
        stores = RemovalStores(database, leases, events, core_cache, index, log, jobs, events_keep_s=keep_s)
        yield WholeErasure(stores)
