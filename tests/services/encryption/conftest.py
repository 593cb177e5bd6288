from collections.abc import AsyncIterator

import httpx
import pytest

from services.bootstrap import Services
from tests.support.application import running_turns, served


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application over these services."""
    async with (
        running_turns(services) as runner,
        served(services, runner) as url,
        httpx.AsyncClient(base_url=url, timeout=120, verify=False) as opened,
    ):
        yield opened
