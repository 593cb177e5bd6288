"""What several turns seek in the same moment is embedded together."""

import asyncio

import pytest

from services.llm.embeddings import EmbeddingBatch
from services.text.caches import drop_texts
from tests.support.clocked_loop import clocked, work

pytestmark = pytest.mark.unit


class Lengths:
    """Gives each text its length as a vector; notes how many it gets at once."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(len(texts))
        if "bad" in texts:
            raise ValueError("bad")
        return [[float(len(text))] for text in texts]


@clocked
async def test_texts_of_one_moment_are_embedded_together_and_each_gets_its_own() -> None:
    batch = EmbeddingBatch(encode := Lengths())
    found = await asyncio.gather(*(batch.of(["a" * number, "b"]) for number in (100, 200, 300, 400)))
    assert found == [[[float(number)], [1.0]] for number in (100, 200, 300, 400)]
    assert encode.calls == [5, 3]
    assert await batch.of(["abc"]) == [[3.0]]


@clocked
async def test_a_batch_is_filled_up_with_texts_that_are_expected() -> None:
    batch = EmbeddingBatch(encode := Lengths())
    batch.expect(["b" * 400, "c" * 300, "d"])
    assert await batch.of(["a"]) == [[1.0]]
    assert await batch.of(["a" * 500]) == [[500.0]]
    batch.expect(["e"])
    drop_texts()
    assert await batch.of(["a"]) == [[1.0]]
    assert encode.calls == [3, 2, 1]


@clocked
async def test_an_idle_event_loop_embeds_what_is_expected_and_a_busy_one_goes_on() -> None:
    batch = EmbeddingBatch(encode := Lengths())
    batch.expect(["a", "b"], soon=True)
    await asyncio.sleep(0.01)
    batch.expect(["bad"], soon=True)
    await asyncio.sleep(0.01)
    assert encode.calls == [2, 1]
    batch.expect(["c"], soon=True)
    work(0.004)
    await asyncio.sleep(0.01)
    assert encode.calls == [2, 1]
    assert await batch.of(["a"]) == [[1.0]]
    assert encode.calls == [2, 1, 2]


@clocked
async def test_all_hear_of_a_failure() -> None:
    batch = EmbeddingBatch(Lengths())
    found = await asyncio.gather(batch.of(["bad"]), batch.of(["a"]), return_exceptions=True)
    assert [type(each) for each in found] == [ValueError, ValueError]
    assert await batch.of(["a"]) == [[1.0]]


@clocked
async def test_a_busy_event_loop_embeds_together_what_its_turns_bring_one_after_the_other() -> None:
    batch = EmbeddingBatch(encode := Lengths())

    async def turn(steps: int) -> None:
        for _ in range(steps):
            work(0.004)
            await asyncio.sleep(0)
        await batch.of(["a"])

    await asyncio.gather(*map(turn, (1, 2, 3)))
    assert encode.calls == [3]


@clocked
async def test_texts_do_not_wait_for_an_event_loop_that_is_busy_for_long() -> None:
    batch = EmbeddingBatch(Lengths())
    others = asyncio.create_task(_busy())
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await batch.of(["a"])
    assert loop.time() - begun < 0.1
    others.cancel()


async def _busy() -> None:
    while True:
        work(0.004)
        await asyncio.sleep(0)
