"""The service's use of Redis over TLS, Sentinels with a failover, and a cluster that loses a node."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr
from redis.exceptions import RedisError

from services.conversations.event_log import EventLog
from services.conversations.turn import TurnRequest
from services.engines import Engines
from services.errors import Unavailable
from services.identity.tenants import DEFAULT_TENANT
from services.platform import redis
from services.platform.patience import CircuitBreaker
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from state.events import TurnEvent
from state.turn import TurnInput
from tests.graph.conftest import process_of
from tests.support.model_server import ModelServer, Reply
from tests.support.redis_servers import (
    PROGRAM,
    RedisServer,
    Watched,
    cluster_servers,
    tls_server,
    use_everything,
    watched_servers,
)
from tests.support.turns import events_of

pytestmark = [
    pytest.mark.untraced,
    pytest.mark.process,
    pytest.mark.skipif(PROGRAM is None, reason="no redis-server on this machine; install the system's package"),
]


@pytest.fixture(scope="module")
def tls_address() -> Iterator[str]:
    with tls_server() as (port, certificate):
        yield f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with watched_servers() as servers:
        yield servers


@pytest.fixture
def cluster() -> Iterator[tuple[str, Sequence[RedisServer]]]:
    with cluster_servers() as servers:
        yield servers


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[RedisClient]:
    client = redis.connect(SecretStr(address))
    yield client
    await redis.close(client)


async def test_over_tls_everything_works_and_a_strange_certificate_is_refused(tls_address: str) -> None:
    async with _connected(tls_address) as client:
        await use_everything(client, tls_address)
    async with _connected(tls_address.partition("?")[0]) as client:
        with pytest.raises(Unavailable):
            await redis.probe(client)


async def test_in_a_cluster_everything_works_until_a_node_is_gone(
    cluster: tuple[str, Sequence[RedisServer]],
) -> None:
    address, nodes = cluster
    async with _connected(address) as client:
        await use_everything(client, address)
        nodes[2].kill()
        events = EventLog(client, CircuitBreaker("Redis"), keep_s=60)
        turns: dict[UUID, Sequence[TurnEvent]] = {uuid4(): [TurnEvent(1, "turn", {})] for _ in range(30)}
        with pytest.raises(Unavailable):  # and no silent loss of those on that node
            await events.append(turns)


@pytest.mark.slow
async def test_turns_go_on_when_the_sentinels_name_another_master(
    watched: Watched, settings: Settings, engines: Engines, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Yes ", "indeed."])
    shared = settings.model_copy(update={"redis_url": SecretStr(watched.address)})
    async with process_of(shared, engines) as (services, here), process_of(shared, engines) as (_, there):
        await use_everything(services.redis, watched.address)

        async def talk(session: str) -> str:
            """A turn of one process, followed in the other."""
            given = TurnInput(user_id="u-1", session_id=session, message="Hello")
            turn = await here.start(TurnRequest(DEFAULT_TENANT, given))
            return str((await events_of(there, turn))[-1].content["answer"])

        assert await talk("before") == "Yes indeed."
        watched.master.kill()
        assert await asyncio.gather(*(talk(f"during-{number}") for number in range(3))) == ["Yes indeed."] * 3
        await _answers(services.redis)
        assert watched.replica.replication()["role"] == "master"
        assert await talk("after") == "Yes indeed."
        with watched.replica.client() as replica:
            assert replica.keys("turn:*")


async def _answers(client: RedisClient) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            await client.set("probe", "1")
        except (RedisError, OSError):
            assert time.monotonic() < end, "there is no new master"
            await asyncio.sleep(0.1)
        else:
            return
