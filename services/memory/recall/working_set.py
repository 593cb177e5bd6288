"""All memories of one user with one expert as arrays, as ranking searches them."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.memory.recall.unit_arrays import ASKS, BLOCK, BY_ASSISTANT, STATES_NOTHING, WRITTEN, UnitArrays
from services.search.parameters import BM25_B, BM25_K1
from services.search.ranking import Mask, Neighbours, Values
from services.search.sequences import Places

_VISIT_S = 3 * 3600
"""A longer pause between two messages begins another visit."""
_COHERENT_AT = 0.15
"""Similarity of neighbours above that of others from which they are trusted fully."""
_PAIRS = 400
_LEAST_PAIRS = 15
"""Pairs of neighbours at which they are trusted by half."""
_RARE = 0.1
_LEAST_RARE = 3
_MOST_RARE = 40


class WorkingSet(UnitArrays):
    """Matches units with words and embeddings."""

    def within(
        self,
        *,
        conversation_id: UUID | None = None,
        episode_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Mask:
        """Return the units in a part of the set; `until` is exclusive."""
        mask = self._living.copy()
        if conversation_id is not None:
            mask &= self._column("conversation") == self.conversations.get(conversation_id, -1)
        if episode_type is not None:
            mask &= self._column("type") == self._types.get(episode_type, 255)
        if since is not None:
            mask &= self._column("said_at") >= since.timestamp()
        if until is not None:
            mask &= self._column("said_at") < until.timestamp()
        return mask

    def by_words(self, asked: Sequence[str], mask: Mask) -> tuple[Values, float]:
        """Return the BM25 score of each unit, and the highest possible one; unknown words count as rare."""
        counted = Counter(asked)
        size = int(self._living.sum())
        names = [term for term in counted if term in self._vocabulary]
        unknown = len(counted) - len(names)
        scores = np.zeros(len(mask))
        possible = unknown * np.log(1 + (size + 0.5) / 0.5) / 2
        if names and size:
            numbers = np.array([self._vocabulary[term] for term in names], dtype=np.intp)
            places, at, counts = self._postings.of(numbers, self._terms, len(self._names))
            held = self._living[places]
            places, at, counts = places[held], at[held], counts[held]
            found = np.bincount(at, minlength=len(numbers))
            repeated = np.array([min(counted[term], 2) for term in names])
            weights = np.log(1 + (size - found + 0.5) / (found + 0.5)) * repeated
            lengths = self._terms.lengths
            relative = lengths[places] / max(float(lengths[self._living].mean()), 1.0)
            matched = counts * (BM25_K1 + 1) / (counts + BM25_K1 * (1 - BM25_B + BM25_B * relative))
            scores = np.bincount(places, weights[at] * matched, minlength=len(mask)).astype(np.float64) * mask
            possible += float(weights.sum())
        return scores, max(possible * (BM25_K1 + 1), 1e-6)

    def by_meaning(self, vectors: NDArray[np.float32]) -> Values:
        """Return for each vector (row) its cosine with each unit; NaN where a unit has no embedding."""
        found = np.empty((len(vectors), len(self._columns)), dtype=np.float32)
        for begin in range(0, len(self._columns), BLOCK):
            part = slice(begin, begin + BLOCK)
            found[:, part] = vectors @ self._vectors.values[part].astype(np.float32).T
        found *= self._scales.values
        found[:, ~self._column("embedded")] = np.nan
        return found.astype(np.float64)

    def neighbours(self) -> Neighbours:
        """Return who stands beside whom."""
        if self._neighbours is None:
            size = len(self._columns)
            said_at, conversation = self._column("said_at"), self._column("conversation")
            living = self._living.nonzero()[0]
            ids = self._units.values[living]
            order = living[np.lexsort((ids[:, 1], ids[:, 0], said_at[living]))]
            visit = np.zeros(size, dtype=np.intp)
            visit[order[1:]] = np.cumsum(np.diff(said_at[order]) > _VISIT_S)
            said = order[~self._are(WRITTEN)[order]]
            said = said[np.argsort(conversation[said], kind="stable")]
            same = (conversation[said[1:]] == conversation[said[:-1]]).nonzero()[0]
            previous, following = np.full(size, -1, dtype=np.intp), np.full(size, -1, dtype=np.intp)
            previous[said[same + 1]], following[said[same]] = said[same], said[same + 1]
            self._neighbours = Neighbours(previous, following, visit, self._coherence(said[same], said[same + 1]))
        return self._neighbours

    def rare_terms(self, place: int, without: frozenset[str]) -> list[str]:
        """Return the terms of a unit that some others have, but few."""
        bounds = self._terms.bounds
        numbers = np.unique(self._terms.values[bounds[place] : bounds[place + 1]]).astype(np.intp)
        places, at, _ = self._postings.of(numbers, self._terms, len(self._names))
        held = np.bincount(at[self._living[places]], minlength=len(numbers))
        few = (held > 1) & (held <= _RARE * len(self) + _LEAST_RARE)
        rarest = numbers[few][np.argsort(held[few], kind="stable")][:_MOST_RARE]
        return [name for number in rarest.tolist() if (name := self._names[number]) not in without]

    def lengths(self, places: Places) -> Places:
        """Return how many terms the units at some places have."""
        return self._terms.lengths[places]

    def kinds(self) -> tuple[Mask, Mask, Mask, Mask]:
        """Return which units the assistant said, which ask, which state nothing, and which were written."""
        return self._are(BY_ASSISTANT), self._are(ASKS), self._are(STATES_NOTHING), self._are(WRITTEN)

    def said_between(self, places: Places, since: datetime, until: datetime) -> Mask:
        """Return which of the units at the places were said in a period; `until` is exclusive."""
        said_at = self._column("said_at")[places]
        return (said_at >= since.timestamp()) & (said_at < until.timestamp())

    def has_elsewhere(self, conversation_id: UUID, before: datetime | None) -> bool:
        """Whether anything of another conversation is embedded, or of this one before that time."""
        here = self._column("conversation") == self.conversations.get(conversation_id, -1)
        if before is not None:
            here &= self._column("said_at") >= before.timestamp()
        return bool((self._living & ~here & self._column("embedded")).any())

    def embeddings(self, places: Places) -> NDArray[np.float32]:
        """Return the embeddings at some places."""
        found: NDArray[np.float32] = (
            self._vectors.values[places].astype(np.float32) * self._scales.values[places][:, np.newaxis]
        )
        return found

    def _coherence(self, ones: Places, others: Places) -> float:
        """How much more alike neighbours are than other pairs, by the newest of them."""
        both = self._column("embedded")[ones] & self._column("embedded")[others]
        ones, others = ones[both][-_PAIRS:], others[both][-_PAIRS:]
        if not len(ones):
            return 0.0
        one, other = self.embeddings(ones), self.embeddings(others)
        beside = float(np.einsum("ij,ij->i", one, other).mean())
        # The mean product of any two of them, without those with themselves.
        total = one.sum(axis=0)
        apart = (float(total @ total) - len(one)) / max(len(one) * (len(one) - 1), 1)
        return float(np.clip((beside - apart) / _COHERENT_AT, 0, 1)) * len(ones) / (len(ones) + _LEAST_PAIRS)
