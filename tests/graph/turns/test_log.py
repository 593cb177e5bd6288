import asyncio

import pytest

from graph.turns.log import TurnLog

pytestmark = pytest.mark.anyio


async def _read(log: TurnLog, after: int = 0) -> list[tuple[int, str]]:
    return [(event.sequence, event.status) async for batch in log.follow(after) for event in batch]


async def test_every_reader_gets_every_event_once_in_order() -> None:
    log = TurnLog()
    readers = [asyncio.create_task(_read(log)) for _ in range(3)]
    log.append("turn", {})
    await asyncio.sleep(0)
    log.append("token", "a")
    log.append("token", "b")
    late = asyncio.create_task(_read(log))
    await asyncio.sleep(0)
    log.append("done", {})
    expected = [(1, "turn"), (2, "token"), (3, "token"), (4, "done")]
    assert await asyncio.gather(*readers, late) == [expected] * 4


async def test_a_reader_that_goes_away_is_forgotten() -> None:
    log = TurnLog()
    reader = asyncio.create_task(_read(log))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    log.append("done", {})
    assert await _read(log) == [(1, "done")]
