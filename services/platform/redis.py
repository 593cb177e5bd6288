"""Redis: a cache and a mailbox, never authoritative. Everything in it may be lost at any time."""

import time
from typing import Any
from uuid import uuid4

from pydantic import SecretStr
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import AuthenticationError, OutOfMemoryError, ReadOnlyError, RedisError, ResponseError

from services.errors import Unavailable
from services.platform.redis_address import RedisAddress

RedisClient = Redis | RedisCluster
"""Client of a server or a cluster: every operation of the service has one key, so both serve it alike."""

_TIMEOUT_S = 1.0
_REDIRECTIONS = 3
_LONGEST_PAUSE_S = 0.2


def connect(url: SecretStr | None) -> RedisClient:
    """Return a client of the Redis at `url`, or of an in-process Redis that ends with this process."""
    if url is None:
        from fakeredis import FakeAsyncRedis, FakeServer  # noqa: PLC0415 — only when embedded

        # A separate in-process server ends with its clients; the library's default one lives as long as the
        # process.
        return FakeAsyncRedis(server=FakeServer(), decode_responses=True)
    limits: dict[str, Any] = {"socket_timeout": _TIMEOUT_S, "socket_connect_timeout": _TIMEOUT_S}
    address = RedisAddress.parse(url.get_secret_value())
    if address.kind == "server":
        return Redis.from_url(address.url, decode_responses=True, **limits)
    options: dict[str, Any] = {**limits, **parse_url(address.options), "decode_responses": True}
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    if address.kind == "cluster":
        options.pop("db", None)
        # After a redirection it tries again after short pauses, so that callers do not wait for long.
        retry = Retry(ExponentialWithJitterBackoff(cap=_LONGEST_PAUSE_S, base=0.01), _REDIRECTIONS)
        return RedisCluster(startup_nodes=[ClusterNode(*node) for node in address.nodes], retry=retry, **options)
    of_sentinels = {name: value for name, value in options.items() if name.startswith(("socket_", "ssl"))}
    of_sentinels |= {"username": address.sentinel_username, "password": address.sentinel_password}
    sentinel: Any = Sentinel(list(address.nodes), sentinel_kwargs=of_sentinels, **options)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(address.service)
    return client


def is_own(client: RedisClient) -> bool:
    """Return whether a client belongs to an in-process Redis, which no other process reads."""
    return type(client).__module__.startswith("fakeredis")


async def close(client: RedisClient) -> None:
    """Close the connections of a client, and those to its Sentinels."""
    await client.aclose()
    if isinstance(client, Redis) and isinstance(client.connection_pool, SentinelConnectionPool):
        for sentinel in client.connection_pool.sentinel_manager.sentinels:
            await sentinel.aclose()


async def probe(client: RedisClient) -> float:
    """Return the milliseconds that writing an event takes; a Redis that only reads is of no use. The key
    differs each time, so that every node of a cluster is tried now and then. Raises `Unavailable` if nothing
    answers, or Redis refuses to write."""
    key = f"turn:probe-{uuid4().hex}:events"
    begun = time.perf_counter()
    try:
        pipeline = client.pipeline(transaction=False)
        pipeline.xadd(key, {"events": "[]"})
        pipeline.delete(key)
        await pipeline.execute()
    except AuthenticationError as error:
        raise Unavailable("Redis refuses the user or the password.") from error
    except ReadOnlyError as error:
        raise Unavailable("Redis refuses to write: it is a replica, which only reads.") from error
    except OutOfMemoryError as error:
        raise Unavailable("Redis refuses to write: its memory (maxmemory) is full.") from error
    except ResponseError as error:
        raise Unavailable(f"Redis refuses to write: {error}") from error
    except (RedisError, OSError) as error:
        raise Unavailable("Redis does not answer.") from error
    return (time.perf_counter() - begun) * 1000
