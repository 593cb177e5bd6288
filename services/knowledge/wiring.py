"""Build the services of this package."""

from dataclasses import dataclass

from services.jobs.queue import JobQueue
from services.knowledge.bases import KnowledgeBases
from services.knowledge.documents import ConversationDocuments, Documents
from services.knowledge.index import ChunkIndex
from services.knowledge.index_sync import ChunkIndexSync
from services.knowledge.search import KnowledgeSearch
from services.llm.embeddings import Embedder
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.settings import Settings


@dataclass(frozen=True)
class Knowledge:
    """The services of knowledge bases."""

    bases: KnowledgeBases
    documents: Documents
    of_conversations: ConversationDocuments
    index: ChunkIndex
    indexing: ChunkIndexSync
    search: KnowledgeSearch


def make_knowledge(
    settings: Settings, database: Database, milvus: Milvus, embedder: Embedder, jobs: JobQueue
) -> Knowledge:
    """Build them and register the index's jobs in the queue."""
    index = ChunkIndex(milvus, model=embedder.model, dimension=embedder.dimension)
    documents = Documents.of(settings, database, jobs)
    return Knowledge(
        bases=KnowledgeBases(database, jobs),
        documents=documents,
        of_conversations=ConversationDocuments(database, documents),
        index=index,
        indexing=ChunkIndexSync(database, index, embedder, jobs),
        search=KnowledgeSearch(database, index, embedder),
    )
