import gc
import weakref
from typing import Any

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from services.errors import ConfigurationError, Unavailable
from services.platform import redis
from services.platform.redis_address import RedisAddress
from services.platform.settings import load_settings
from tests.support.ports import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["in-process", "server"])
def address(request: Any) -> SecretStr | None:
    """Both kinds of Redis: what holds for the one must hold for the other."""
    return None if request.param == "in-process" else SecretStr(request.getfixturevalue("redis_server"))


async def test_what_is_set_is_got_as_text(address: SecretStr | None) -> None:
    client = redis.connect(address)
    await client.set("key", "值")
    assert await client.get("key") == "值"
    assert await redis.ping(client) >= 0
    await client.aclose()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    client = redis.connect(SecretStr(f"redis://127.0.0.1:{free_port()}/0"))
    with pytest.raises(Unavailable):
        await redis.ping(client)
    await client.aclose()


async def test_one_within_the_process_ends_with_its_clients() -> None:
    client = redis.connect(None)
    await client.set("key", "value")
    assert isinstance(client, Redis)
    server = weakref.ref(client.connection_pool.connection_kwargs["server"])
    assert server() is not None
    await client.aclose()
    del client
    gc.collect()
    assert server() is None


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "service"),
    [
        ("redis://one:6379/2", "server", (), ""),
        ("redis+sentinel://:pw@one:1,two/mymaster/2", "sentinel", (("one", 1), ("two", 26379)), "mymaster"),
        (
            "rediss+cluster://u:p%40@[::1]:7000,[::2]?ssl_ca_certs=/ca",
            "cluster",
            (("::1", 7000), ("::2", 6379)),
            "",
        ),
    ],
)
def test_an_address_names_a_server_the_service_of_sentinels_or_a_cluster(
    url: str, kind: str, nodes: tuple[tuple[str, int], ...], service: str
) -> None:
    address = RedisAddress.parse(url)
    assert (address.kind, address.nodes, address.service) == (kind, nodes, service)
    assert address.tls == url.startswith("rediss")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://one:6379", "not a redis://"),
        ("redis+sentinel://one:26379", "the service's name"),
        ("redis+sentinel://one:26379/mymaster/first", "'first' is not the number of a database"),
        ("redis+cluster://one:6379/3", "no databases but 0"),
        ("redis+cluster://one:port,two:6379", "'one:port' is not of the form host:port"),
        ("redis+cluster://", "'' is not of the form host:port"),
    ],
)
def test_a_wrong_address_is_refused_with_the_reason_and_without_the_password(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^ANAMNESIS_REDIS_URL is not accepted .*{why}"):
        load_settings(redis_url=url)
