"""Embeds in one go what several turns ask for in the same moment."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_MOMENT_S = 0.001
_AT_ONCE = 600
"""Characters after which the event loop goes on."""

Vector = TypeVar("Vector")


class EmbeddingBatch(Generic[Vector]):
    """Collects texts for a moment: the encoder's twelve megabytes of weights are then read once for all of them.

    For one short text alone, reading them takes half of its time.
    """

    def __init__(self, encode: Callable[[list[str]], Sequence[Vector]]) -> None:
        """Take what makes a vector of each text."""
        self._encode = encode
        self._waiting: deque[tuple[str, asyncio.Future[Vector]]] = deque()

    async def of(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; raises what the encoder raises."""
        loop = asyncio.get_running_loop()
        found: list[asyncio.Future[Vector]] = [loop.create_future() for _ in texts]
        self._waiting.extend(zip(texts, found, strict=True))
        loop.call_later(_MOMENT_S, self._embed_waiting)
        return [await found[0]] if len(found) == 1 else await asyncio.gather(*found)

    def _embed_waiting(self) -> None:
        taken: list[tuple[str, asyncio.Future[Vector]]] = []
        characters = 0
        while self._waiting and characters < _AT_ONCE:
            text, found = self._waiting.popleft()
            if not found.done():  # not cancelled meanwhile
                taken.append((text, found))
                characters += len(text)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._embed_waiting)
        if not taken:
            return
        try:
            vectors = self._encode([text for text, _ in taken])
        except Exception as error:
            for _, found in taken:
                found.set_exception(error)
            return
        for (_, found), vector in zip(taken, vectors, strict=True):
            found.set_result(vector)
