"""A service over two databases."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.engines import Engines
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.settings import Settings
from tests.support.databases import Databases
from tests.support.shards import Sharded, sharded_service, with_shards


@pytest.fixture(scope="session")
def north_milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A second Milvus Lite."""
    with asyncio.Runner() as runner:
        server = EmbeddedMilvus(tmp_path_factory.mktemp("north"))
        server.launch()
        runner.run(server.wait())
        yield server.uri
        runner.run(server.stop())


@pytest.fixture
def north(databases: Databases) -> Iterator[str]:
    """Name of the shard's database."""
    with databases.taken() as name:
        yield name


@pytest.fixture
def keyed(settings: Settings) -> Settings:
    """The service's own settings: callers have API keys, and no job runs by itself."""
    return settings.model_copy(update={"auth": "api_key", "worker": "external"})


@pytest.fixture
async def sharded(
    keyed: Settings, engines: Engines, postgres: EmbeddedPostgres, north: str, north_milvus: str, tmp_path: Path
) -> AsyncIterator[Sharded]:
    """The running service."""
    given = with_shards(keyed, engines, postgres, north, north_milvus, tmp_path)
    async with sharded_service(given, engines) as opened:
        yield opened
