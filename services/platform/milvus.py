"""Milvus: an index that can be rebuilt from PostgreSQL. The client is made when it is first needed."""

import asyncio
import os
import time
from typing import TYPE_CHECKING

from services.errors import Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr
    from pymilvus import AsyncMilvusClient

_TIMEOUT_S = 2.0


class Milvus:
    """The connection to one Milvus server, embedded or not."""

    def __init__(self, uri: str, token: "SecretStr | None" = None) -> None:
        self._uri = uri
        self._token = token.get_secret_value() if token else ""
        self._client: AsyncMilvusClient | None = None
        self._connecting = asyncio.Lock()

    async def client(self) -> "AsyncMilvusClient":
        """The client.

        Raises:
            Unavailable: nothing answers.
        """
        async with self._connecting:
            if self._client is None:
                # Else gRPC writes its own remarks to our standard error.
                os.environ.setdefault("GRPC_VERBOSITY", "NONE")
                # The import takes most of a second and would hold up the start; a thread keeps turns flowing.
                await asyncio.to_thread(__import__, "pymilvus")
                from pymilvus import AsyncMilvusClient, MilvusException  # noqa: PLC0415

                try:
                    client = AsyncMilvusClient(uri=self._uri, token=self._token, timeout=_TIMEOUT_S)
                    async with asyncio.timeout(_TIMEOUT_S):
                        await client.list_collections()
                except (MilvusException, TimeoutError, OSError) as error:
                    raise Unavailable("Milvus does not answer.") from error
                self._client = client
        return self._client

    async def ping(self) -> float:
        """Milliseconds that listing the collections takes.

        Raises:
            Unavailable: nothing answers.
        """
        client = await self.client()
        from pymilvus import MilvusException  # noqa: PLC0415

        begun = time.perf_counter()
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await client.list_collections()
        except (MilvusException, TimeoutError, OSError) as error:
            raise Unavailable("Milvus does not answer.") from error
        return (time.perf_counter() - begun) * 1000

    async def close(self) -> None:
        """Close the client, if one was made."""
        if self._client is not None:
            await self._client.close()
            self._client = None
