"""Compression, made once."""

from dataclasses import dataclass

from services.compression.clusters import ClusterFinder
from services.compression.compression import Compression
from services.compression.rules import compression_rules
from services.compression.scheduler import CompressionScheduler
from services.compression.store import CompressionStore
from services.compression.undo import CompressionUndo
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.llm.embeddings import Embedder
from services.memory.operations import OperationLog
from services.platform.postgres import Database
from services.platform.settings import Settings


@dataclass(frozen=True)
class CompressionServices:
    """What compresses memory, and when."""

    compression: Compression
    scheduler: CompressionScheduler


def make_compression(
    settings: Settings,
    database: Database,
    models: ChatModels,
    embedder: Embedder,
    operations: OperationLog,
    jobs: JobQueue,
) -> CompressionServices:
    """Wire it; the jobs are registered in the queue."""
    compression = Compression(
        database,
        CompressionStore(database, operations, jobs),
        CompressionUndo(database, operations, jobs),
        models,
        ClusterFinder(embedder),
        jobs,
        compression_rules(settings),
    )
    return CompressionServices(compression, CompressionScheduler(database, compression, jobs))
