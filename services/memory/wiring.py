"""Memory, made once: the services of this package with one another."""

from dataclasses import dataclass
from uuid import UUID

from services.encryption.vault import Vault
from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.memory.archive import Archive
from services.memory.cache import CoreMemoryCache
from services.memory.catalog import EpisodeCatalog
from services.memory.changes import Changes
from services.memory.core import CoreMemory
from services.memory.core_values import CoreValues
from services.memory.episodes.index import EpisodeIndex
from services.memory.episodes.index_sync import EpisodeIndexSync
from services.memory.episodes.store import EpisodeStore
from services.memory.finding import MemoryFinder
from services.memory.foreign_origins import ForeignOrigins
from services.memory.known import KnownMemories
from services.memory.open_questions import OpenQuestions
from services.memory.operations import OperationLog
from services.memory.pairs import Pairs
from services.memory.pins import Pins
from services.memory.planner import ChangePlanner
from services.memory.proposals import Proposals
from services.memory.recall.recall import Recall
from services.memory.recall.working_sets import WorkingSets
from services.memory.removal.branches import BranchMemory
from services.memory.removal.exclusions import Exclusions
from services.memory.removal.hiding import Hiding, RebuildTasks
from services.memory.removal.undo import Undo
from services.platform.breaker import CircuitBreaker
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from services.text.caches import drop_texts
from services.text.secrets import Secrets


@dataclass(frozen=True)
class Memory:
    """The services of memory."""

    core: CoreMemory
    core_cache: CoreMemoryCache
    operations: OperationLog
    episodes: EpisodeStore
    index: EpisodeIndex
    indexing: EpisodeIndexSync
    working_sets: WorkingSets
    recall: Recall
    archive: Archive
    catalog: EpisodeCatalog
    hiding: Hiding
    undo: Undo
    branching: BranchMemory
    changes: Changes
    pins: Pins
    values: CoreValues
    known: KnownMemories
    proposals: Proposals
    questions: OpenQuestions
    exclusions: Exclusions
    foreign_origins: ForeignOrigins
    vault: Vault | None = None

    def drop_cached(self, user_id: UUID) -> None:
        """Drop what this process holds of a user in memory, and every text that it has looked at lately."""
        self.working_sets.forget(user_id)
        drop_texts()
        if self.vault is not None:
            self.vault.keys.drop_cached()


def make_memory(
    settings: Settings,
    database: Database,
    cache: RedisClient,
    milvus: Milvus,
    embedder: Embedder,
    jobs: JobQueue,
    remaking: RebuildTasks,
) -> Memory:
    """Wire it, and register the jobs of the index; `remaking` names those that make again what is withdrawn."""
    secrets = Secrets(settings.memory_keep_secrets)
    operations = OperationLog(database, secrets)
    core_cache = CoreMemoryCache(
        cache, CircuitBreaker("Redis"), shares_human=settings.memory_share_human, vault=database.vault
    )
    episodes = EpisodeStore(database, jobs, secrets)
    index = EpisodeIndex(
        milvus,
        model=embedder.model,
        dimension=embedder.dimension,
        key_of=database.user_key if database.vault else None,
    )
    working_sets = WorkingSets(
        database,
        index,
        dimension=embedder.dimension,
        limit_bytes=settings.memory_working_set_mb * 2**20,
        embed_now=embedder.embed_now,
        lost=episodes.index_again,
    )
    recall = Recall(episodes, index, working_sets, embedder, budget_s=settings.memory_recall_budget_ms / 1000)
    core = CoreMemory(
        database, core_cache, operations, on=settings.memory_core, shares_human=settings.memory_share_human
    )
    hiding = Hiding(core, episodes, operations, jobs, remaking)
    archive = Archive(database, episodes, recall, operations)
    undo = Undo(database, hiding, operations)
    values = CoreValues(database)
    questions = OpenQuestions(database, values)
    finder = MemoryFinder(database, core, embedder)
    changes = Changes(database, ChangePlanner(core, values, finder, secrets), finder, hiding)
    pairs = Pairs(database, core, values, archive, operations)
    return Memory(
        core=core,
        core_cache=core_cache,
        operations=operations,
        episodes=episodes,
        index=index,
        indexing=EpisodeIndexSync(database, index, embedder, jobs, on_indexed=working_sets.learn),
        working_sets=working_sets,
        recall=recall,
        archive=archive,
        catalog=EpisodeCatalog(database, operations),
        changes=changes,
        pins=Pins(database, core, operations),
        values=values,
        known=KnownMemories(database, values),
        proposals=Proposals(database, changes, operations, undo, values, pairs, questions),
        questions=questions,
        undo=undo,
        branching=BranchMemory(hiding, operations),
        hiding=hiding,
        exclusions=Exclusions(database),
        foreign_origins=ForeignOrigins(database),
        vault=database.vault,
    )
