"""Clients of OpenAI's SDK against the application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from openai import AsyncOpenAI


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[AsyncOpenAI]:
    # Plain HTTP: to load the certificates would take longer than most tests.
    async with (
        httpx2.AsyncClient(verify=False, timeout=120) as http,
        AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=http) as client,
    ):
        yield client


@pytest.fixture
async def sdk(url: str) -> AsyncIterator[AsyncOpenAI]:
    """The SDK's client; it sends nothing twice by itself."""
    async with _client(url) as opened:
        yield opened


@pytest.fixture
async def shared_sdk(shared_url: str) -> AsyncIterator[AsyncOpenAI]:
    """The same for the application over the shared services."""
    async with _client(shared_url) as opened:
        yield opened
