"""Compression, made once."""

from dataclasses import dataclass

from services.compression.clusters import Alike
from services.compression.compression import Compression
from services.compression.rules import compression_rules
from services.compression.scheduler import CompressionRounds
from services.compression.store import CompressionStore
from services.compression.undo import Undoing
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.operations import OperationLog
from services.platform.postgres import Database
from services.platform.settings import Settings


@dataclass(frozen=True)
class Compressing:
    """What compresses memory, and when."""

    compression: Compression
    rounds: CompressionRounds


def make_compression(
    settings: Settings,
    database: Database,
    models: ChatModels,
    embedder: Embedder,
    operations: OperationLog,
    jobs: JobQueue,
) -> Compressing:
    """Wire it; the jobs are registered in the queue."""
    compression = Compression(
        database,
        CompressionStore(database, operations, jobs),
        Undoing(database, operations, jobs),
        models,
        Alike(embedder),
        jobs,
        compression_rules(settings),
    )
    return Compressing(compression, CompressionRounds(database, compression, jobs))
