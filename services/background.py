"""Wires what removes memory, and what works on it in the background."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.blocks import Owner
from services.memory.filing import Filing, FilingPlans
from services.memory.filing_checks import FilingEvidence
from services.memory.filing_store import FilingStore
from services.memory.lineage.tracing import Lineage
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.removal.erasures import Erasures
from services.memory.removal.expiry import Retention
from services.memory.removal.key_renewal import KeyRenewal
from services.memory.removal.receipts import ReceiptKey, Receipts
from services.memory.removal.stores import RemovalStores
from services.memory.removal.targets import PlanTopic, TargetPlanner
from services.memory.removal.wholes import WholeErasure
from services.memory.upkeep.pairs import PairFinder
from services.memory.upkeep.scheduler import UpkeepScheduler
from services.memory.upkeep.upkeep import Upkeep
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.reflection.reflection import Reflection
from state.memory import PlannedChange


class BackgroundServices:
    """Services that work on memory in the background."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        memory: Memory,
        models: ChatModels,
        embedder: Embedder,
        jobs: JobQueue,
        find_days: Callable[[datetime], Awaitable[int]] | None,
    ) -> None:
        """Make them; the jobs are registered in the queue."""
        self.filing = Filing(
            FilingStore(database, memory.operations),
            FilingEvidence(memory.changes.finder, memory.values, memory.foreign_origins),
            models,
            FilingPlans(memory.changes.planner, memory.core),
            memory.hiding,
            memory.proposals,
            jobs,
            on=settings.memory_filing and (settings.memory_core or settings.memory_episodes),
            quiet_s=settings.memory_filing_quiet_s,
            pause_s=settings.memory_filing_pause_s,
        )
        pairs = PairFinder(models, embedder)
        self.upkeep = Upkeep(database, memory.values, pairs, memory.proposals.pairs, memory.operations)
        self.scheduler = UpkeepScheduler(
            database,
            self.upkeep,
            jobs,
            find_days=find_days,
            on=settings.memory_upkeep and settings.memory_episodes,
        )
        self.reflection = Reflection(database, models, jobs, on=settings.memory_reflection)


class RemovalServices:
    """Services that remove what users said."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        memory: Memory,
        leases: TurnLeases,
        events: EventLog,
        jobs: JobQueue,
    ) -> None:
        """Make them and register their jobs."""
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
        self.erasure = WholeErasure(stores)
        self.retention = Retention(database, self.erasure, jobs)
        self.forgetting = Erasures(
            stores,
            Lineage(database),
            TargetPlanner(database, memory.values, _plan_topic(memory)),
            memory.hiding,
            Receipts(database, ReceiptKey(settings.data_dir, settings.receipt_key_file)),
            KeyRenewal(database, jobs),
        )


def _plan_topic(memory: Memory) -> PlanTopic:
    async def plan(owner: Owner, topic: str) -> PlannedChange:
        request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
        return await memory.changes.planner.plan_everything(request, topic)

    return plan
