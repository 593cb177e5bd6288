"""A runner ends, whatever swallows a cancellation."""

import asyncio

import pytest

from graph.turns.runner import _cancel

pytestmark = pytest.mark.anyio


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    swallowed: list[bool] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(True)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await _cancel([task])
    assert swallowed == [True]
    assert task.cancelled()
