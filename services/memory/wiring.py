"""Makes the services of memory once, and connects them."""

from uuid import UUID

from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.memory.archive import Archive
from services.memory.catalog import EpisodeCatalog
from services.memory.changes import Changes
from services.memory.core.pins import Pins
from services.memory.core.store import CoreMemory
from services.memory.core.values import CoreValues
from services.memory.episodes.episode import EpisodeStore
from services.memory.episodes.index import EpisodeIndex
from services.memory.episodes.index_sync import EpisodeIndexSync
from services.memory.finding.finder import MemoryFinder
from services.memory.finding.known import KnownMemories
from services.memory.operations import OperationLog
from services.memory.planning.planner import ChangePlanner
from services.memory.proposals.pairs import Pairs
from services.memory.proposals.questions import OpenQuestions
from services.memory.proposals.settling import Proposals
from services.memory.reading.trust import ForeignOrigins
from services.memory.recall.recall import Recall
from services.memory.recall.working_sets import WorkingSets
from services.memory.removal.exclusions import Exclusions
from services.memory.removal.hiding import Hiding
from services.memory.removal.undo import Undo
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.text.caches import drop_texts
from services.text.secrets import Secrets


class Memory:
    """The services of memory."""

    def __init__(
        self, settings: Settings, database: Database, milvus: Milvus, embedder: Embedder, jobs: JobQueue
    ) -> None:
        """Take the stores and the embedder, and register the jobs of the index."""
        secrets = Secrets(settings.memory_keep_secrets)
        self.vault = database.vault
        self.operations = OperationLog(database, secrets)
        self.episodes = EpisodeStore(database, jobs, secrets)
        self.index = EpisodeIndex(
            milvus,
            model=embedder.model,
            dimension=embedder.dimension,
            key_of=database.user_key if database.vault else None,
        )
        self.working_sets = WorkingSets(
            database,
            self.index,
            dimension=embedder.dimension,
            limit_bytes=settings.memory_working_set_mb * 2**20,
            embed_soon=embedder.embed_soon,
            lost=self.episodes.index_again,
        )
        self.indexing = EpisodeIndexSync(database, self.index, embedder, jobs, on_indexed=self.working_sets.learn)
        self.recall = Recall(
            self.episodes,
            self.index,
            self.working_sets,
            embedder,
            budget_s=settings.memory_recall_budget_ms / 1000,
        )
        self.core = CoreMemory(database, self.operations, on=settings.memory_core)
        self.hiding = Hiding(self.core, self.episodes, self.operations, jobs)
        self.archive = Archive(database, self.episodes, self.recall, self.operations)
        self.catalog = EpisodeCatalog(database, self.operations)
        self.undo = Undo(database, self.hiding, self.core, self.operations, jobs)
        self.pins = Pins(database, self.core, self.operations)
        self.values = CoreValues(database)
        self.questions = OpenQuestions(database, self.values)
        self.exclusions = Exclusions(database)
        self.foreign_origins = ForeignOrigins(database, self.values)
        finder = MemoryFinder(database, self.core, embedder, self.working_sets.embeddings_of)
        self.known = KnownMemories(database, self.values, finder)
        planner = ChangePlanner(self.core, self.values, finder, secrets)
        self.changes = Changes(database, planner, finder, self.hiding)
        pairs = Pairs(database, self.core, self.values, self.archive, self.operations)
        self.proposals = Proposals(database, self.changes, self.operations, self.values, pairs, self.questions)

    def drop_cached(self, user_id: UUID) -> None:
        """Drop everything of a user from this process's memory, and every text that it has examined lately."""
        self.working_sets.forget(user_id)
        drop_texts()
        if self.vault is not None:
            self.vault.keys.drop_cached()
