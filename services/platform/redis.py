"""Redis: a cache and a mailbox, never authoritative. Everything in it may be lost at any time."""

import time
from typing import TYPE_CHECKING

from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.errors import Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

_TIMEOUT_S = 1.0


def connect(url: "SecretStr | None") -> Redis:
    """Return a client of the server at `url`, or of an in-process Redis that ends with this process."""
    if url is None:
        from fakeredis import FakeAsyncRedis, FakeServer  # noqa: PLC0415 — only when embedded

        # A separate in-process server ends with its clients; the library's default one lives as long as the
        # process.
        return FakeAsyncRedis(server=FakeServer(), decode_responses=True)
    return Redis.from_url(
        url.get_secret_value(),
        decode_responses=True,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
    )


async def ping(client: Redis) -> float:
    """Return the milliseconds that a PING takes.

    Raises:
        Unavailable: nothing answers.
    """
    begun = time.perf_counter()
    try:
        await client.ping()
    except (RedisError, OSError) as error:
        raise Unavailable("Redis does not answer.") from error
    return (time.perf_counter() - begun) * 1000
