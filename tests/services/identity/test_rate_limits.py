import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from services.errors import RateLimited
from services.identity.rate_limits import RateLimits
from services.identity.tenants import DEFAULT_TENANT
from services.platform import redis
from services.platform.settings import load_settings
from tests.support.ports import free_port

UNHURRIED_S = 30
"""For a Redis that answers: on a busy machine, too, the counts of two processes are together."""


@asynccontextmanager
async def _limits(
    redis_url: str | None, *, patience_s: float = UNHURRIED_S, **limits: int
) -> AsyncIterator[RateLimits]:
    settings = load_settings(redis_url=redis_url, **{f"rate_limit_{n}_per_minute": v for n, v in limits.items()})
    client = redis.connect(settings.redis_url)
    yield RateLimits(settings, client, patience_s=patience_s)
    await client.aclose()


@pytest.fixture(params=["in-process", "server"])
def redis_url(request: Any) -> str | None:
    """Where the counts are: what holds for the one must hold for the other."""
    return None if request.param == "in-process" else str(request.getfixturevalue("redis_server"))


async def test_a_tenants_turns_and_requests_are_counted_together(redis_url: str | None) -> None:
    tenant = uuid4()
    async with _limits(redis_url, tenant=4) as limits:
        for number in range(2):
            await limits.count_turn(tenant, f"u-{number}")
            await limits.count_request(tenant)
        for late in (limits.count_turn(tenant, "u-9"), limits.count_request(tenant)):
            with pytest.raises(RateLimited):
                await late
        await limits.count_request(uuid4())


async def test_a_redis_that_hangs_delays_one_request_and_the_process_counts_for_itself() -> None:
    async with _hanging_redis() as (url, asked), _limits(url, patience_s=0.1, user=3) as limits:
        begun = time.monotonic()
        await limits.count_turn(DEFAULT_TENANT, "u-1")
        assert time.monotonic() - begun < 10, "Redis would never answer"
        await limits.count_turn(DEFAULT_TENANT, "u-1")
        await limits.count_turn(DEFAULT_TENANT, "u-1")
        with pytest.raises(RateLimited):
            await limits.count_turn(DEFAULT_TENANT, "u-1")
        assert len(asked) == 1, "the others do not wait for it"


async def test_when_redis_is_back_the_counts_are_shared_again(redis_server: str) -> None:
    port, tenant = free_port(), uuid4()
    behind = int(redis_server.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
    settings = load_settings(redis_url=f"redis://127.0.0.1:{port}/0", rate_limit_user_per_minute=2)
    client = redis.connect(settings.redis_url)
    limits = RateLimits(settings, client, without_redis_s=0.1, patience_s=UNHURRIED_S)
    await limits.count_turn(tenant, "u-1")

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection("127.0.0.1", behind)
        while asked := await reader.read(65536):
            to_server[1].write(asked)
            writer.write(await to_server[0].read(65536))
        to_server[1].close()
        writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", port)
    await asyncio.sleep(0.15)
    async with _limits(redis_server, user=2) as other:
        for one in (limits, other):
            await one.count_turn(tenant, "u-1")
        with pytest.raises(RateLimited):
            await limits.count_turn(tenant, "u-1")
    await client.aclose()
    server.close()


@asynccontextmanager
async def _hanging_redis() -> AsyncIterator[tuple[str, list[int]]]:
    """A server that takes connections and never answers; and the connections."""
    asked: list[int] = []
    end = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        await end.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"redis://127.0.0.1:{port}/0", asked
    end.set()
    server.close()
