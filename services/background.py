"""Services that work on memory in the background: filing, upkeep, reflection."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.filing import Filing
from services.memory.filing_evidence import FilingEvidence
from services.memory.filing_plans import FilingPlans
from services.memory.filing_store import FilingStore
from services.memory.upkeep.wiring import UpkeepServices, make_upkeep
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.reflection.reflection import Reflection


@dataclass(frozen=True)
class BackgroundServices:
    """Services that work on memory in the background."""

    filing: Filing
    upkeep: UpkeepServices
    reflection: Reflection


def make_background(
    settings: Settings,
    database: Database,
    memory: Memory,
    models: ChatModels,
    embedder: Embedder,
    jobs: JobQueue,
    find_days: Callable[[datetime], Awaitable[int]] | None,
) -> BackgroundServices:
    """Wire it; the jobs are registered in the queue."""
    store = FilingStore(database, memory.operations)
    filing = Filing(
        store,
        FilingEvidence(memory.changes, memory.values, memory.foreign_origins),
        models,
        FilingPlans(memory.changes, memory.core, memory.hiding),
        memory.proposals,
        jobs,
        on=settings.memory_filing and (settings.memory_core or settings.memory_episodes),
        quiet_s=settings.memory_filing_quiet_s,
        pause_s=settings.memory_filing_pause_s,
    )
    return BackgroundServices(
        filing,
        make_upkeep(
            settings,
            database,
            models,
            embedder,
            jobs,
            values=memory.values,
            proposals=memory.proposals,
            episodes=memory.episodes,
            operations=memory.operations,
            find_days=find_days,
        ),
        Reflection(database, models, jobs, on=settings.memory_reflection),
    )
