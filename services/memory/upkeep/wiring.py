"""Upkeep, made once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.core_values import CoreValues
from services.memory.episodes.store import EpisodeStore
from services.memory.operations import OperationLog
from services.memory.proposals import Proposals
from services.memory.upkeep.compared import ComparedMemories
from services.memory.upkeep.pairs import PairFinder
from services.memory.upkeep.policy import UpkeepPolicies
from services.memory.upkeep.proposing import PairProposer
from services.memory.upkeep.scheduler import UpkeepScheduler
from services.memory.upkeep.upkeep import Upkeep
from services.platform.postgres import Database
from services.platform.settings import Settings


@dataclass(frozen=True)
class UpkeepServices:
    """Upkeep, and when it is done."""

    upkeep: Upkeep
    scheduler: UpkeepScheduler


def make_upkeep(
    settings: Settings,
    database: Database,
    models: ChatModels,
    embedder: Embedder,
    jobs: JobQueue,
    *,
    values: CoreValues,
    proposals: Proposals,
    episodes: EpisodeStore,
    operations: OperationLog,
    find_days: Callable[[datetime], Awaitable[int]] | None,
) -> UpkeepServices:
    """Wire it; the jobs are registered in the queue."""
    policies = UpkeepPolicies(database)
    compared = ComparedMemories(database, values)
    proposer = PairProposer(database, policies, compared, PairFinder(models, embedder), proposals)
    upkeep = Upkeep(database, policies, proposer, episodes, operations)
    scheduler = UpkeepScheduler(
        database,
        upkeep,
        jobs,
        find_days=find_days,
        keep_days=settings.memory_upkeep_keep_days,
        on=settings.memory_upkeep and settings.memory_episodes,
    )
    return UpkeepServices(upkeep, scheduler)
