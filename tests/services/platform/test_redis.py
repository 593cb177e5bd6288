import pytest
from pydantic import SecretStr

from services.errors import ConfigurationError, Unavailable
from services.platform import redis
from services.platform.redis_address import RedisAddress
from services.platform.settings import load_settings
from tests.support.ports import free_port

pytestmark = pytest.mark.anyio


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    client = redis.connect(SecretStr(f"redis://127.0.0.1:{free_port()}/0"))
    with pytest.raises(Unavailable):
        await redis.ping(client)
    await client.aclose()


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "service"),
    [
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
        ("redis+cluster://one:6379/3", "no databases but 0"),
        ("redis+cluster://one:port,two:6379", "'one:port' is not of the form host:port"),
    ],
)
def test_a_wrong_address_is_refused_with_the_reason_and_without_the_password(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^ANAMNESIS_REDIS_URL is not accepted .*{why}"):
        load_settings(redis_url=url)
