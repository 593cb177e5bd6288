"""The index against what happens while it is written, and against stores that are away."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.knowledge.index import ChunkIndex
from services.knowledge.index_sync import ChunkIndexSync
from services.llm.builtin_embeddings import BuiltinEncoder
from services.llm.embedding_clients import EmbeddingClient, Roles
from services.llm.embeddings import Embedder
from services.platform.settings import Settings
from tests.support.knowledge import a_base, found, put
from tests.support.milvus_server import MilvusServer, indexed_chunks

pytestmark = pytest.mark.untraced

QUESTION, ANSWER = "How many days of holidays?", "Thirty days of holidays."


class _Interrupted(EmbeddingClient):
    """Embeddings of the built-in encoder, before which something happens, once."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self.at_once, self.roles = 64, Roles()
        self._meanwhile: Callable[[], Awaitable[object]] | None = meanwhile
        self._encoder = BuiltinEncoder()

    async def embed(self, texts: list[str]) -> list[list[float]]:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return [each.tolist() for each in self._encoder.encode(texts)]


@pytest.fixture
async def alone(settings: Settings, engines: Engines, milvus_server: MilvusServer) -> AsyncIterator[Services]:
    """All services, over an index of the test's own."""
    async with open_services(settings, replace(engines, milvus_uri=milvus_server.uri)) as opened:
        yield opened


def _interrupted(services: Services, meanwhile: Callable[[], Awaitable[object]]) -> ChunkIndexSync:
    model, dimension = services.embedder.model, services.embedder.dimension
    embedder = Embedder(_Interrupted(meanwhile), model=model, dimension=dimension)
    index = ChunkIndex(services.milvus, model=model, dimension=dimension)
    return ChunkIndexSync(services.database, index, embedder, JobQueue(services.database))


async def test_what_is_replaced_while_it_is_indexed_does_not_come_back(
    alone: Services, milvus_server: MilvusServer
) -> None:
    base = await a_base(alone)
    await put(alone, base, "leave.md", "Forty days of holidays.")
    indexing = _interrupted(alone, lambda: put(alone, base, "leave.md", ANSWER))
    assert await indexing.index_waiting() == 2
    assert len(indexed_chunks(milvus_server.uri, base.id)) == 1
    assert await found(alone, QUESTION) == [("leave.md", ANSWER)]


@pytest.mark.traced
async def test_what_is_removed_while_the_index_is_made_anew_does_not_come_back(
    alone: Services, milvus_server: MilvusServer
) -> None:
    base = await a_base(alone)
    gone = await put(alone, base, "gone.md", "Forty days of holidays.")
    await put(alone, base, "leave.md", ANSWER)
    documents = alone.knowledge.documents
    indexing = _interrupted(alone, lambda: documents.delete(DEFAULT_TENANT, base.id, gone.document.id))
    await indexing.rebuild(lambda _: None)
    assert len(indexed_chunks(milvus_server.uri, base.id)) == 1
    assert await found(alone, QUESTION) == [("leave.md", ANSWER)]
