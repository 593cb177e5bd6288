"""The application over services with an index."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from services.bootstrap import Services
from services.engines import Engines
from tests.support.application import running_turns, served


@pytest.fixture
def engines(engines: Engines, milvus_uri: str) -> Engines:
    """With a Milvus that answers."""
    return replace(engines, milvus_uri=milvus_uri)


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application over these services."""
    async with (
        running_turns(services) as runner,
        served(services, runner) as url,
        httpx.AsyncClient(base_url=url, timeout=30, verify=False) as opened,
    ):
        yield opened
