import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from tests.support.folders import new_folder


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedPostgres]:
    """A server of the test's own, with its files and its write-ahead log written as in service."""
    with new_folder() as folder:
        started = EmbeddedPostgres(Path(folder))
        await started.start()
        await asyncio.to_thread(migrate, started.url(OWNER_ROLE), SERVICE_ROLE)
        yield started
        await started.stop()
