"""Milvus: an index that can be rebuilt from PostgreSQL. The client is created on first use."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import SecretStr

from services.errors import Unavailable
from services.platform.embedded_milvus import Standby
from services.platform.patience import CircuitBreaker
from services.platform.proxies import is_loopback

if TYPE_CHECKING:
    from pymilvus import AsyncMilvusClient, MilvusClient

Result = TypeVar("Result")

_TIMEOUT_S = 2.0
_START_S, _LOOK_S = 15.0, 0.05
_SLOW_TIMEOUT_S = 60.0
"""Seconds to wait for background requests, such as a flush."""
_CALM = {"grpc.keepalive_time_ms": 330_000, "grpc.keepalive_permit_without_calls": 0}
"""Options of gRPC: its servers disconnect clients that ping every ten seconds, which is this client's default."""
LITE = "milvus_lite"
"""Beginning of the version that Milvus Lite reports."""
NO_SUCH_COLLECTION = 100
"""Milvus' error code for a missing collection or alias."""


@lru_cache(maxsize=1)
def pymilvus() -> Any:
    """Return the client's library, imported at the first use of the index, because that takes half a second."""
    import pymilvus.client.entity_helper  # noqa: PLC0415

    # It would check every character of each text; the server knows what is too long.
    pymilvus.client.entity_helper.CHECK_STR_ARRAY = False
    return pymilvus


class CollectionMissing(Unavailable):
    """The index, or a part of it, is missing."""


class Milvus:
    """The connection to one Milvus server, embedded or not."""

    def __init__(self, uri: str, token: SecretStr | None = None, standby: Standby | None = None) -> None:
        """Take the address; an embedded server is started with the first use."""
        self._uri = uri
        self._options = {**_CALM, "grpc.enable_http_proxy": 0} if is_loopback(uri) else _CALM
        self._token = token.get_secret_value() if token else ""
        self._client: AsyncMilvusClient | None = None
        self.standby = standby
        self._is_lite: bool | None = None if standby is None else True
        self._connecting = asyncio.Lock()
        self._breaker = CircuitBreaker("Milvus", counts=lambda error: not isinstance(error, CollectionMissing))

    @property
    def failing(self) -> bool:
        """Return whether its last use failed."""
        return self._breaker.failing

    @property
    def is_ready(self) -> bool:
        """Whether this process has talked to it and it is not asleep: then it may answer at once."""
        return self._client is not None and (self.standby is None or self.standby.is_running)

    @asynccontextmanager
    async def use(self) -> AsyncIterator["AsyncMilvusClient"]:
        """Yield the client; after consecutive failures it is not used for a while. Raises `CollectionMissing`
        if a named collection is missing, and `Unavailable` if nothing answers, or Milvus refuses."""
        async with self._breaker.use():
            await self.awake()
            client = await self._connected()
            try:
                yield client
            except pymilvus().MilvusException as error:
                if error.code == NO_SUCH_COLLECTION:
                    raise CollectionMissing("A collection of the index is not there.") from error
                raise Unavailable(f"Milvus does not answer, or refuses (code {error.code}).") from error
            except (TimeoutError, OSError, _grpc_error()) as error:
                raise Unavailable("Milvus does not answer.") from error

    async def awake(self) -> None:
        """Wait until an embedded server has been started. Raises `Unavailable` if it does not start."""
        if self.standby is None:
            return
        self.standby.need()
        end = time.monotonic() + _START_S
        while not self.standby.is_running:
            self.standby.need()
            if time.monotonic() > end:
                raise Unavailable("Milvus does not start.")
            await asyncio.sleep(_LOOK_S)

    async def is_lite(self) -> bool:
        """Return whether it is Milvus Lite, embedded or at an address. Raises `Unavailable` if nothing answers."""
        if self._is_lite is None:
            async with self.use() as client, asyncio.timeout(_TIMEOUT_S):
                self._is_lite = (await client.get_server_version()).startswith(LITE)
        return self._is_lite

    async def in_thread(self, work: "Callable[[MilvusClient], Result]") -> Result:
        """Run in a thread what the asynchronous client cannot do with every server, such as making indexes.
        Raises `Unavailable` if nothing answers, or Milvus refuses."""

        def run() -> Result:
            client = pymilvus().MilvusClient(
                uri=self._uri, token=self._token, timeout=_SLOW_TIMEOUT_S, grpc_options=self._options
            )
            try:
                return work(client)
            finally:
                client.close()

        async with self.use():
            return await asyncio.to_thread(run)

    async def ping(self) -> float:
        """Return the milliseconds that a short question takes. Raises `Unavailable` if nothing answers."""
        begun = time.perf_counter()
        async with self.use() as client, asyncio.timeout(_TIMEOUT_S):
            await self._ask_anything(client)
        return (time.perf_counter() - begun) * 1000

    async def close(self) -> None:
        """Close the client, if one was made."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _connected(self) -> "AsyncMilvusClient":
        async with self._connecting:
            if self._client is None:
                # Otherwise gRPC writes messages to standard error.
                os.environ.setdefault("GRPC_VERBOSITY", "NONE")
                # Its handlers run in every child between fork and exec, where they may kill it.
                os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
                # The import would block the start; in a thread turns continue.
                library = await asyncio.to_thread(pymilvus)
                # It logs every failure with its traceback; the service logs each once.
                logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
                client = library.AsyncMilvusClient(
                    uri=self._uri, token=self._token, timeout=_SLOW_TIMEOUT_S, grpc_options=self._options
                )
                try:
                    async with asyncio.timeout(_TIMEOUT_S):
                        await self._ask_anything(client)
                except (library.MilvusException, TimeoutError, OSError) as error:
                    await client.close()
                    raise Unavailable("Milvus does not answer.") from error
                except BaseException:
                    await client.close()
                    raise
                self._client = client
        return self._client

    async def _ask_anything(self, client: "AsyncMilvusClient") -> None:
        # Milvus Lite opens all collections in order to list them, and keeps them in memory.
        await (client.list_collections() if self.standby is None else client.get_server_version())


def _grpc_error() -> type[Exception]:
    from grpc import RpcError  # noqa: PLC0415 — imported by now

    return RpcError  # type: ignore[no-any-return]
