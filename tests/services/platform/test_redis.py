import gc
import weakref
from typing import Any

import pytest
from pydantic import SecretStr

from services.errors import Unavailable
from services.platform import redis
from tests.conftest import free_port

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
    server = weakref.ref(client.connection_pool.connection_kwargs["server"])
    assert server() is not None
    await client.aclose()
    del client
    gc.collect()
    assert server() is None
