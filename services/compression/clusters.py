"""Groups a user's similar episodes by their embeddings, as far as these can be trusted."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.compression.models import Member
from services.compression.rules import CompressionRules
from services.compression.similarity import components, pieces
from services.llm.embeddings import Embedder
from services.search.embedding_quality import measured, probe_texts

_AT_ONCE = 512
_SENSELESS = 0.99
"""Similarity of unrelated sentences above which an embedding cannot be used for grouping."""


class ClusterFinder:
    """Finds groups of very similar episodes."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._floor: float | None = None

    async def groups(self, members: Sequence[Member], rules: CompressionRules) -> list[list[Member]]:
        """Return groups of the configured minimum size, connected by similarity.

        Raises:
            Unavailable: the embedding endpoint does not answer.
        """
        if len(members) < rules.cluster:
            return []
        floor = await self._measured_floor()
        if floor >= _SENSELESS:
            return []
        vectors = await self._vectors(members)
        # In a thread: turns of the same process go on meanwhile.
        found = await asyncio.to_thread(components, vectors, max(rules.similarity, floor))
        large = [group for group in found if len(group) >= rules.cluster]
        parts = [part for group in large for part in pieces(group, rules.most_at_once)]
        return [[members[place] for place in part] for part in parts if len(part) >= rules.cluster]

    async def _vectors(self, members: Sequence[Member]) -> NDArray[np.float32]:
        # Recomputed, because the index has those of single messages. Lists of numbers take eight times the memory.
        parts = [np.zeros((0, self._embedder.dimension), dtype=np.float32)]
        for start in range(0, len(members), _AT_ONCE):
            texts = [member.said for member in members[start : start + _AT_ONCE]]
            parts.append(np.asarray(await self._embedder.embed_documents(texts), dtype=np.float32))
        return np.concatenate(parts)

    async def _measured_floor(self) -> float:
        """The cosine that one of a hundred pairs of unrelated sentences reaches, in the worse language."""
        if self._floor is None:
            found = measured(await self._embedder.embed_documents(probe_texts()))
            self._floor = max(quality.cosine_floor for quality in found.values())
        return self._floor
