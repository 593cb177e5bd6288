"""Services that work on memory in the background: filing, upkeep, reflection."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.filing import Filing
from services.memory.filing_evidence import FilingEvidence
from services.memory.filing_plans import FilingPlans
from services.memory.filing_store import FilingStore
from services.memory.upkeep.pairs import PairFinder
from services.memory.upkeep.policy import UpkeepPolicies
from services.memory.upkeep.proposing import PairProposer
from services.memory.upkeep.scheduler import UpkeepScheduler
from services.memory.upkeep.upkeep import Upkeep
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.reflection.reflection import Reflection


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
        policies = UpkeepPolicies(database)
        pairs = PairFinder(models, embedder)
        proposer = PairProposer(database, policies, memory.values, pairs, memory.proposals)
        self.upkeep = Upkeep(database, policies, proposer, memory.episodes, memory.operations)
        self.scheduler = UpkeepScheduler(
            database,
            self.upkeep,
            jobs,
            find_days=find_days,
            keep_days=settings.memory_upkeep_keep_days,
            on=settings.memory_upkeep and settings.memory_episodes,
        )
        self.reflection = Reflection(database, models, jobs, on=settings.memory_reflection)
