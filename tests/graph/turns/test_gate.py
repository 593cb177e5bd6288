"""Who begins next when more begin at once than may."""

import asyncio
from contextlib import ExitStack

from graph.turns.turn_queue import FairGate


class _Crowd:
    """Users who ask to be let in, and the order in which they were."""

    def __init__(self, gate: FairGate) -> None:
        self._gate = gate
        self.let_in: list[str] = []
        self.places: list[ExitStack] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def asks(self, *names: str) -> None:
        for name in names:
            self.tasks[name] = asyncio.create_task(self._enter(name))
            await asyncio.sleep(0)

    async def _enter(self, name: str) -> None:
        place = await self._gate.enter(name.rstrip("0123456789"), ends=name.startswith("end"))
        self.let_in.append(name)
        self.places.append(place)

    async def one_leaves(self) -> None:
        self.places.pop(0).close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_of_many_users_the_newest_and_the_oldest_request_take_turns() -> None:
    crowd = _Crowd(FairGate(1))
    await crowd.asks("a", "b", "c", "d", "e")
    for _ in range(4):
        await crowd.one_leaves()
    assert crowd.let_in == ["a", "b", "e", "c", "d"]


async def test_who_ends_comes_in_once_nobody_waits_to_begin() -> None:
    crowd = _Crowd(FairGate(1))
    await crowd.asks("a", "end1", "b", "end2", "end3", "c")
    crowd.tasks["end2"].cancel()
    for _ in range(4):
        await crowd.one_leaves()
    assert crowd.let_in == ["a", "b", "c", "end1", "end3"]
    await crowd.asks("end4")
    crowd.tasks["end4"].cancel()
    await asyncio.sleep(0)
    await crowd.one_leaves()
    await crowd.asks("d")
    assert crowd.let_in[-1] == "d"


async def test_everybody_is_let_in_at_last_and_the_places_are_free_again() -> None:
    crowd = _Crowd(FairGate(3))
    names = [f"{user}{number}" for number in range(20) for user in "abc"]
    await crowd.asks(*names)
    while crowd.places:
        await crowd.one_leaves()
    assert sorted(crowd.let_in) == sorted(names)
    await crowd.asks("x1", "x2", "x3", "x4")
    assert crowd.let_in[-3:] == ["x1", "x2", "x3"]


async def test_who_gives_up_at_the_moment_of_being_let_in_passes_the_place_on() -> None:
    crowd = _Crowd(FairGate(1))
    await crowd.asks("a", "b", "c")
    crowd.places.pop(0).close()
    crowd.tasks["b"].cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert crowd.let_in == ["a", "c"]


async def test_a_place_is_given_back_once() -> None:
    gate = FairGate(1)
    place = await gate.enter("a")
    place.close()
    place.close()
    await gate.enter("a")
    waiting = asyncio.create_task(gate.enter("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
