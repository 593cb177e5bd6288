"""Assistants' clients, of the SDK, against the application."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

Connect = Callable[..., AbstractAsyncContextManager[Client]]
either_protocol = pytest.mark.parametrize("assistant", ["legacy", "auto"], indirect=True)


@pytest.fixture
def connect(url: str) -> Connect:
    """Connects a client: with headers, in a mode of the SDK, with its other options."""

    @asynccontextmanager
    async def connected(headers: dict[str, str] | None = None, **options: Any) -> AsyncIterator[Client]:
        # Plain HTTP: to load the certificates would take longer than most tests.
        async with (
            httpx2.AsyncClient(headers=headers, verify=False, timeout=120) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), **options) as client,
        ):
            yield client

    return connected


@pytest.fixture
async def assistant(connect: Connect, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client for the user u-1; with `either_protocol`, in each generation of the protocol."""
    async with connect({"X-User-Id": "u-1"}, mode=getattr(request, "param", "auto")) as client:
        yield client
