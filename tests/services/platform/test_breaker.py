import asyncio

import pytest

from services.errors import Unavailable
from services.platform.breaker import CircuitBreaker

pytestmark = pytest.mark.anyio


class _Away(Exception):
    pass


async def _use(breaker: CircuitBreaker, error: Exception | None = None) -> None:
    async with breaker.use():
        if error is not None:
            raise error


async def _fail(breaker: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        with pytest.raises(_Away):
            await _use(breaker, _Away())


async def test_what_fails_three_times_is_left_alone_and_then_tried_again() -> None:
    breaker = CircuitBreaker("it", rest_s=1.0)
    await _fail(breaker, 3)
    with pytest.raises(Unavailable, match="it does not answer"):
        await _use(breaker)
    assert breaker.failing
    await asyncio.sleep(1.05)
    await _fail(breaker, 1)
    with pytest.raises(Unavailable):
        await _use(breaker)
    await asyncio.sleep(1.05)
    await _use(breaker)
    assert not breaker.failing
    await _fail(breaker, 2)
    await _use(breaker)


async def test_successes_in_between_start_the_count_again() -> None:
    breaker = CircuitBreaker("it")
    for _ in range(4):
        await _fail(breaker, 2)
        await _use(breaker)


async def test_what_does_not_count_never_opens_it() -> None:
    breaker = CircuitBreaker("it", counts=lambda error: not isinstance(error, _Away))
    await _fail(breaker, 10)
    assert not breaker.failing


async def test_being_cancelled_is_not_a_failure() -> None:
    breaker = CircuitBreaker("it", failures=1)

    async def hang() -> None:
        async with breaker.use():
            await asyncio.sleep(10)

    task = asyncio.create_task(hang())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    await _use(breaker)
