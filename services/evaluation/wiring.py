"""The evaluation over open services."""

from services.evaluation.evaluation import Evaluation
from services.identity.tenants import Tenants
from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.transfer.wiring import make_importer


def make_evaluation(
    settings: Settings, database: Database, jobs: JobQueue, memory: Memory, embedder: Embedder
) -> Evaluation:
    """Wire it."""
    # The set must not be summarised.
    quiet = settings.model_copy(update={"memory_summaries": False, "memory_topics": False})
    return Evaluation(Tenants(database), make_importer(quiet, database, jobs), memory, embedder)
