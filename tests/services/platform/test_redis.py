import pytest
from pydantic import SecretStr

from services.errors import ConfigurationError, Unavailable
from services.platform import redis
from services.platform.settings import load_settings
from tests.support.ports import free_port

pytestmark = pytest.mark.anyio


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    client = redis.connect(SecretStr(f"redis://127.0.0.1:{free_port()}/0"))
    with pytest.raises(Unavailable):
        await redis.ping(client)
    await client.aclose()


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
