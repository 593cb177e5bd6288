"""Clients of OpenAI's SDK against the application."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from openai import AsyncOpenAI


@pytest.fixture
async def sdk(url: str) -> AsyncIterator[AsyncOpenAI]:
    """The SDK's client; it sends nothing twice by itself."""
    # Plain HTTP: to load the certificates would take longer than most tests.
    async with (
        httpx2.AsyncClient(verify=False, timeout=30) as http,
        AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=http) as client,
    ):
        yield client
