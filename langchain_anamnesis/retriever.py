"""A retriever over what a user said and what is remembered of the user."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from anamnesis_client import FoundMemory
from langchain_anamnesis.clients import Clients, Named, Whose


class AnamnesisRetriever(BaseRetriever):
    """Finds messages and memories of a user, best first.

    `user`, `space` and `expert` may be functions of the runtime of the graph in which it runs.
    """

    url: str
    user: Named
    key: str | None = None
    limit: int = 5
    """Maximum documents."""
    space: Named | None = None
    """Space of the user that is searched too."""
    expert: Named | None = None
    """Expert who remembers; None = the default one."""
    _clients: Clients = PrivateAttr()

    def model_post_init(self, _: Any, /) -> None:
        """Make the clients."""
        self._clients = Clients(self.url, "", self.key)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        user, names = self._whose.names()
        return [_document(each) for each in self._clients.sync.recall(query, limit=self.limit, user=user, **names)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        user, names = self._whose.names()
        async with self._clients.one() as client:
            found = await client.recall(query, limit=self.limit, user=user, **names)
        return [_document(each) for each in found]

    @property
    def _whose(self) -> Whose:
        return Whose(self.user, self.space, self.expert)


def _document(found: FoundMemory) -> Document:
    about = {"kind": found.kind, "score": found.score, "created_at": found.created_at.isoformat()}
    return Document(page_content=found.text, id=found.id, metadata=about)
