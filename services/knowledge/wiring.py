"""Builds the services of this package."""

from services.jobs.queue import JobQueue
from services.knowledge.attachments import AttachmentCuts
from services.knowledge.bases import KnowledgeBases
from services.knowledge.conversation_documents import ConversationDocuments
from services.knowledge.documents import Documents
from services.knowledge.index import ChunkIndex
from services.knowledge.index_sync import ChunkIndexSync
from services.knowledge.search import KnowledgeSearch
from services.llm.embeddings import Embedder
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.settings import Settings


class Knowledge:
    """The services of knowledge bases."""

    def __init__(
        self, settings: Settings, database: Database, milvus: Milvus, embedder: Embedder, jobs: JobQueue
    ) -> None:
        """Make the services, and register the index's jobs in the queue."""
        self.bases = KnowledgeBases(database, jobs)
        self.documents = Documents.of(settings, database, jobs)
        self.of_conversations = ConversationDocuments(database, self.documents)
        self.index = ChunkIndex(milvus, model=embedder.model, dimension=embedder.dimension)
        self.indexing = ChunkIndexSync(database, self.index, embedder, jobs)
        self.search = KnowledgeSearch(database, self.index, embedder)
        self.attachments = AttachmentCuts(embedder)
