"""Tenants in two databases, over HTTP: each request reaches its tenant's, and a move loses nothing."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.engines import Engines
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.settings import Settings
from tests.support.shards import Sharded, second_database, sharded_service, with_shards

pytestmark = [pytest.mark.anyio, pytest.mark.indexed]

CHAT = "/api/v1/chat"


@pytest.fixture(scope="module")
def north_milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A second Milvus Lite."""
    import asyncio

    with asyncio.Runner() as runner:
        server = EmbeddedMilvus(tmp_path_factory.mktemp("north"))
        server.launch()
        runner.run(server.wait())
        yield server.uri
        runner.run(server.stop())


@pytest.fixture
async def sharded(
    settings: Settings, engines: Engines, postgres: EmbeddedPostgres, north_milvus: str, tmp_path: Path
) -> AsyncIterator[Sharded]:
    """A service whose callers have API keys."""
    with second_database(postgres) as north:
        keyed = settings.model_copy(update={"auth": "api_key"})
        async with sharded_service(
            with_shards(keyed, engines, postgres, north, north_milvus, tmp_path), engines
        ) as opened:
            yield opened


async def test_a_turn_of_each_tenant_is_stored_in_its_own_database(sharded: Sharded) -> None:
    _, here = await sharded.tenant("stays")
    goes, there = await sharded.tenant("goes")
    async with here, there:
        await sharded.moves().move(goes, "north", wait_s=1)
        for client in (here, there):
            answer = await client.post(CHAT, json={"user_id": "mia", "session_id": "s", "message": "Hello."})
            assert answer.status_code == 200, answer.text
    north = sharded.shards.opened["north"].services
    assert await sharded.home.database.tenants() != await north.database.tenants()
    assert [str(goes)] == [str(found) for found in await north.database.tenants()]
