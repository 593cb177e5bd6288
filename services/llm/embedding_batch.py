"""Embeds in one go what several turns ask for in the same moment."""

import asyncio
from collections.abc import Callable

_MOMENT_S = 0.001
_AT_ONCE = 8
"""Texts after which the event loop goes on."""

Vectors = list[list[float]]


class EmbeddingBatch:
    """Collects texts for a moment: the encoder's twelve megabytes of weights are then read once for all of them.

    For one short text alone, reading them takes half of its time.
    """

    def __init__(self, encode: Callable[[list[str]], Vectors]) -> None:
        """Take what makes a vector of each text."""
        self._encode = encode
        self._waiting: list[tuple[list[str], asyncio.Future[Vectors]]] = []

    async def of(self, texts: list[str]) -> Vectors:
        """Return a vector for each text; raises what the encoder raises."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Vectors] = loop.create_future()
        self._waiting.append((texts, found))
        loop.call_later(_MOMENT_S, self._embed_waiting)
        return await found

    def _embed_waiting(self) -> None:
        taken: list[tuple[list[str], asyncio.Future[Vectors]]] = []
        while self._waiting and sum(len(texts) for texts, _ in taken) < _AT_ONCE:
            taken.append(self._waiting.pop(0))
        wanted = [(texts, found) for texts, found in taken if not found.done()]  # not cancelled meanwhile
        if not wanted:
            return
        try:
            vectors = iter(self._encode([text for texts, _ in wanted for text in texts]))
        except Exception as error:
            for _, found in wanted:
                found.set_exception(error)
            return
        for texts, found in wanted:
            found.set_result([next(vectors) for _ in texts])
