"""A retriever over all that a user said and that is remembered of them."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from anamnesis_client import FoundMemory
from langchain_anamnesis.clients import Clients


class AnamnesisRetriever(BaseRetriever):
    """Finds messages and memories of a user, best first."""

    url: str
    user: str
    key: str | None = None
    limit: int = 5
    """Documents at most."""
    _clients: Clients = PrivateAttr()

    def model_post_init(self, _: Any, /) -> None:
        """Make the clients."""
        self._clients = Clients(self.url, self.user, self.key)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(each) for each in self._clients.sync.recall(query, limit=self.limit)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        async with self._clients.one() as client:
            return [_document(each) for each in await client.recall(query, limit=self.limit)]


def _document(found: FoundMemory) -> Document:
    about = {"kind": found.kind, "score": found.score, "created_at": found.created_at.isoformat()}
    return Document(page_content=found.text, id=found.id, metadata=about)
