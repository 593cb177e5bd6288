"""All memories of one user with one expert as arrays, as ranking searches them."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.memory.recall.unit_arrays import ASKS, BLOCK, BY_ASSISTANT, LONG, STATES_NOTHING, WRITTEN, UnitArrays
from services.search.collection import BM25_B, BM25_K1
from services.search.units import Mask, Overview, Places, Values

_VISIT_S = 3 * 3600
"""Seconds of pause between two messages after which another visit begins."""
_COHERENT_AT = 0.15
"""Difference between the likeness of neighbours and that of other units from which on neighbours are trusted
fully."""
_PAIRS = 400
_LEAST_PAIRS = 15
"""Number of pairs of neighbours at which they are trusted by half."""
_RARE = 0.1
_LEAST_RARE = 3
_MOST_RARE = 40


class WorkingSet(UnitArrays):
    """Matches units with words and embeddings."""

    _dampening: Values
    """BM25's addend to the count of a term in each passage, larger in a longer one; computed with the overview."""
    _later: Places
    """Places of the passages after the first of each unit; computed with the overview."""

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
        mask[self._later_passages()] = False
        if conversation_id is not None:
            mask &= self._column("conversation") == self.conversations.get(conversation_id, -1)
        if episode_type is not None:
            mask &= self._column("type") == self._types.get(episode_type, 255)
        if since is not None:
            mask &= self._column("said_at") >= since.timestamp()
        if until is not None:
            mask &= self._column("said_at") < until.timestamp()
        return mask

    def by_words(self, texts: Sequence[Sequence[str]], mask: Mask) -> tuple[Values, Values]:
        """Return the BM25 score of each unit (column) for each text (row), and the highest possible score of each
        text.

        Args:
            texts: the terms of each; unknown ones count as rare.
            mask: the units that are looked at.
        """
        rows: list[dict[int, int]] = []
        unknown: list[int] = []
        for terms in texts:
            counted = Counter(terms)
            rows.append(
                {
                    number: count
                    for term, count in counted.items()
                    if (number := self._vocabulary.get(term)) is not None
                }
            )
            unknown.append(len(counted) - len(rows[-1]))
        scores, possible = self._matches(rows)
        self._to_units(scores)
        if not mask.all():
            scores *= mask
        size = self.overview().size
        possible += np.array(unknown) * math.log(1 + (size + 0.5) / 0.5) / 2
        return scores, np.maximum(possible * (BM25_K1 + 1), 1e-6)

    def by_rare_terms(self, seeds: Sequence[int], without: Sequence[str], places: Places) -> Values:
        """Return for each seed unit (row) the share of its rare terms that each other unit has.

        Args:
            seeds: the places of those units.
            without: terms that do not count.
            places: those of the other units.
        """
        most = _RARE * self.overview().size + _LEAST_RARE
        passed = {self._vocabulary.get(term) for term in without}
        rows: list[dict[int, int]] = []
        for seed in seeds:
            numbers = self._terms_of_unit(seed)
            held = self._held.values[numbers]
            few = ((held > 1) & (held <= most)).nonzero()[0]
            if len(few) > _MOST_RARE:
                few = few[np.lexsort((numbers[few], held[few]))[:_MOST_RARE]]
            rows.append({number: 1 for number in numbers[few].tolist() if number not in passed})
        found, possible = self._matches(rows)
        self._to_units(found)
        scores = found[:, places] / np.maximum(possible * (BM25_K1 + 1), 1e-6)[:, np.newaxis]
        for score, seed in zip(scores, seeds, strict=True):
            score[places == seed] = 0.0
        return scores

    def _matches(self, rows: Sequence[Mapping[int, int]]) -> tuple[Values, Values]:
        """Return the scores of units (columns) for rows of terms with their counts, and the weight of each row."""
        index: dict[int, int] = {}
        weights = np.zeros((len(rows), sum(map(len, rows))))
        for weight, row in zip(weights, rows, strict=True):
            weight[[index.setdefault(number, len(index)) for number in row]] = [*row.values()]
        numbers = np.fromiter(index, dtype=np.intp, count=len(index))
        held, size = self._held.values[numbers], self.overview().size
        weights = np.minimum(weights[:, : len(index)], 2) * np.log(1 + (size - held + 0.5) / (held + 0.5))
        scores = np.zeros((len(rows), len(self._columns)))
        if index:
            places, at, counts = self._postings.of(
                numbers, self._terms, self._counts.values, len(self._vocabulary)
            )
            matched = counts * (BM25_K1 + 1)
            matched /= counts + self._dampening[places]
            for score, weight in zip(scores, weights, strict=True):
                score[:] = np.bincount(places, weight[at] * matched, minlength=len(self._columns))
        return scores, weights.sum(axis=1)

    def by_meaning(self, vectors: NDArray[np.float32]) -> Values:
        """Return for each vector (row) its cosine with each unit; NaN where a unit has no embedding."""
        found = np.empty((len(vectors), len(self._columns)), dtype=np.float32)
        for begin in range(0, len(self._columns), BLOCK):
            part = slice(begin, begin + BLOCK)
            found[:, part] = (self._vectors.values[part].astype(np.float32) @ vectors.T).T
        found *= self._scales.values
        np.copyto(found, np.nan, where=~self._column("embedded"))
        self._to_units(found)
        return found.astype(np.float64)

    def has_passages(self, place: int) -> bool:
        """Return whether a unit has several passages."""
        return self._end(place) > place + 1

    def best_passage(self, place: int, texts: Sequence[Sequence[str]], vectors: NDArray[np.float32]) -> int:
        """Return the number of the passage of a unit that is nearest to a message.

        Args:
            place: of the unit.
            texts: the terms of the message and of its parts.
            vectors: what it is compared with, of length 1; may be none.
        """
        places = np.arange(place, self._end(place))
        rows = [
            {number: 1 for term in terms if (number := self._vocabulary.get(term)) is not None} for terms in texts
        ]
        scores, possible = self._matches(rows)
        match = (scores[:, places] / np.maximum(possible * (BM25_K1 + 1), 1e-6)[:, np.newaxis]).max(axis=0)
        if len(vectors):
            match += (vectors @ self.embeddings(places).T).max(axis=0)
        return int(match.argmax())

    def _later_passages(self) -> Places:
        """Return the places of all passages except the first of each unit."""
        self.overview()
        return self._later

    def _to_units(self, scores: NDArray[Any]) -> None:
        """Give each unit (column) the best score of its passages, in place; NaN means no score."""
        later = self._later_passages()
        if len(later):
            units = later - self._column("passage")[later]
            for row in scores:
                np.fmax.at(row, units, row[later])

    def _end(self, place: int) -> int:
        """The place behind the last passage of a unit."""
        passages, end = self._column("passage"), place + 1
        while end < len(passages) and passages[end]:
            end += 1
        return end

    def _terms_of_unit(self, place: int) -> Places:
        """The different terms of all passages of a unit."""
        end = self._end(place)
        bounds = self._terms.bounds
        found: Places = self._terms.values[bounds[place] : bounds[end]]
        return found if end == place + 1 else np.unique(found)

    def by_neighbours(self, places: Places) -> Values:
        """Return the cosines of some units (columns) with the messages before and after them (rows). It is 0 where
        there is no such message, an embedding is missing, or the two have nothing in common."""
        known = self.overview()
        rows = np.array([places, known.previous[places], known.following[places]])
        vectors, scales = self._vectors.values.take(rows, axis=0).astype(np.float32), self._scales.values[rows]
        found: NDArray[np.float32] = np.einsum("ij,kij->ki", vectors[0], vectors[1:]) * (scales[0] * scales[1:])
        found[rows[1:] < 0] = 0.0
        return found.clip(min=0.0).astype(np.float64)

    def overview(self) -> Overview:
        """Return the facts known about each unit, and which units are neighbours."""
        if self._overview is None:
            self._overview = self._looked_over()
        return self._overview

    def _looked_over(self) -> Overview:
        size = len(self._columns)
        said_at, conversation = self._column("said_at"), self._column("conversation")
        living = self._living.nonzero()[0]
        is_first = self._column("passage")[living] == 0
        first, self._later = living[is_first], living[~is_first]
        ids = self._units.values[first]
        order = first[np.lexsort((ids[:, 1], ids[:, 0], said_at[first]))]
        visit = np.zeros(size, dtype=np.intp)
        visit[order[1:]] = np.cumsum(np.diff(said_at[order]) > _VISIT_S)
        kinds = (BY_ASSISTANT, ASKS, STATES_NOTHING, WRITTEN, LONG)
        by_assistant, asks, nothing, written, long = map(self._are, kinds)
        said = order[~written[order]]
        said = said[np.argsort(conversation[said], kind="stable")]
        same = (conversation[said[1:]] == conversation[said[:-1]]).nonzero()[0]
        previous, following = np.full(size, -1, dtype=np.intp), np.full(size, -1, dtype=np.intp)
        previous[said[same + 1]], following[said[same]] = said[same], said[same + 1]
        answers = (by_assistant & (previous >= 0)).nonzero()[0]
        asked = previous[answers]
        exchange = np.arange(size)
        exchange[answers] = np.where(long[answers] | long[asked], asked, answers)
        lengths = self._column("length").astype(np.float64)
        usual = max(float(lengths[living].mean()), 1.0) if len(living) else 1.0
        self._dampening = BM25_K1 * (1 - BM25_B + BM25_B * (lengths / usual))
        return Overview(
            size=len(living),
            previous=previous,
            following=following,
            exchange=exchange,
            answering=answers[asks[asked]],
            visit=visit,
            visits=int(visit.max()) + 1 if size else 0,
            coherence=self._coherence(said, same),
            by_assistant=by_assistant,
            asks=asks,
            states_nothing=nothing,
            written=written,
        )

    @property
    def said_at(self) -> Values:
        """When each unit was said, in seconds since 1970."""
        return self._column("said_at")

    def has_elsewhere(self, conversation_id: UUID, before: datetime | None) -> bool:
        """Return whether anything of another conversation is embedded, or of this one before that time."""
        here = self._column("conversation") == self.conversations.get(conversation_id, -1)
        known = self._living & self._column("embedded")
        if (known & ~here).any():
            return True
        return before is not None and bool((known & here & (self._column("said_at") < before.timestamp())).any())

    def embeddings(self, places: Places) -> NDArray[np.float32]:
        """Return the embeddings at some places."""
        found: NDArray[np.float32] = (
            self._vectors.values[places].astype(np.float32) * self._scales.values[places][:, np.newaxis]
        )
        return found

    def embeddings_of(self, unit_ids: Collection[UUID]) -> dict[UUID, NDArray[np.float32]]:
        """Return the embeddings of those units that have one; for a long unit that of its first passage."""
        usable = self._column("embedded") & (self._column("passage") == 0)
        places = {self.unit_id(place): place for place in self._places_of(unit_ids) if usable[place]}
        return dict(zip(places, self.embeddings(np.array([*places.values()], dtype=np.intp)), strict=True))

    def _coherence(self, said: Places, pairs: Places) -> float:
        """Return how much more alike neighbours are than other units, judged by the newest. Pairs begin at places
        in `said`."""
        embedded = self._column("embedded")[said]
        pairs = pairs[embedded[pairs] & embedded[pairs + 1]][-_PAIRS:]
        if not len(pairs):
            return 0.0
        rows, at, count = said[pairs[0] : pairs[-1] + 2], pairs - pairs[0], len(pairs)
        vectors, scales = self._vectors.values[rows].astype(np.float32), self._scales.values[rows]
        beside = np.einsum("ij,ij->i", vectors[:-1], vectors[1:]) * scales[:-1] * scales[1:]
        # The mean product of any two of them, without those with themselves.
        weights = np.zeros_like(scales)
        weights[at] = scales[at]
        total = weights @ vectors
        apart = (float(total @ total) - count) / max(count * (count - 1), 1)
        coherence = min(max((float(beside[at].mean()) - apart) / _COHERENT_AT, 0.0), 1.0)
        return coherence * count / (count + _LEAST_PAIRS)
