"""What several turns seek in the same moment is embedded together."""

import asyncio

import pytest

from services.llm.embeddings import EmbeddingBatch

pytestmark = [pytest.mark.unit, pytest.mark.anyio]


class Lengths:
    """Gives each text its length as a vector; notes how many it gets at once."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(len(texts))
        if "bad" in texts:
            raise ValueError("bad")
        return [[float(len(text))] for text in texts]


async def test_texts_of_one_moment_are_embedded_together_and_each_gets_its_own() -> None:
    batch = EmbeddingBatch(encode := Lengths())
    found = await asyncio.gather(*(batch.of(["a" * number, "b"]) for number in (100, 200, 300, 400)))
    assert found == [[[float(number)], [1.0]] for number in (100, 200, 300, 400)]
    assert encode.calls == [5, 3]
    assert await batch.of(["abc"]) == [[3.0]]


async def test_all_hear_of_a_failure() -> None:
    batch = EmbeddingBatch(Lengths())
    found = await asyncio.gather(batch.of(["bad"]), batch.of(["a"]), return_exceptions=True)
    assert [type(each) for each in found] == [ValueError, ValueError]
    assert await batch.of(["a"]) == [[1.0]]
