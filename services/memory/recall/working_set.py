"""All memories of one user with one expert as arrays, for ranking.

Units are found by words (BM25) and by meaning (cosine) in one pass each, and then ranked.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import numpy as np

from services.memory.recall.unit_arrays import BLOCK, Mask, UnitArrays
from services.search.columns import WAITING, WRITTEN, Columns, Concepts, features_of
from services.search.index_terms import Marked
from services.search.meaning import WordMeanings, lengths_of
from services.search.parameters import BM25_B, BM25_K1
from services.search.passages import Passages
from services.search.sequences import Places, TermSequences, boundaries, stretches
from services.search.term_matrix import TermCounts, Values


class WorkingSet(UnitArrays):
    """Finds units, and reads them as ranking does."""

    def contents(self, places: Places) -> list[Marked]:
        """The terms, concepts and features of the units at some places."""
        begins, ends = self._stretch(places)
        of_terms = boundaries(ends - begins).tolist()
        terms = list(map(self._names.__getitem__, self._terms.values[stretches(begins, ends - begins)].tolist()))
        at, bounds = self._concepts.indexes(places)
        spoken = [(self._concept_names[name], weight) for name, weight in self._concepts.values[at].tolist()]
        of_concepts = bounds.tolist()
        return [
            Marked(
                tuple(terms[of_terms[number] : of_terms[number + 1]]),
                dict(spoken[of_concepts[number] : of_concepts[number + 1]]),
                features_of(kinds),
            )
            for number, kinds in enumerate(self._column("kinds")[places].tolist())
        ]

    def are_indexed(self, places: Places) -> list[bool]:
        """Whether the index has the units at some places."""
        indexed: list[bool] = ((self._column("kinds")[places] & WAITING) == 0).tolist()
        return indexed

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

    def waiting(self, mask: Mask, most: int) -> Places:
        """Return units not indexed yet, newest first."""
        places = (mask & self._are(WAITING)).nonzero()[0]
        return self._ordered(places)[::-1][:most]

    def by_words(self, terms: Sequence[str], mask: Mask, most: int) -> Places:
        """Return the units that match terms best, by BM25 over the whole set; those without any are left out."""
        asked = Counter(term for term in terms if term in self._vocabulary)
        living = self._living
        if not asked or not living.any():
            return np.zeros(0, dtype=np.intp)
        numbers = np.array([self._vocabulary[term] for term in asked], dtype=np.intp)
        places, at, counts = self._postings.of(numbers, self._terms, len(self._names))
        held = living[places]
        places, at, counts = places[held], at[held], counts[held]
        size = int(living.sum())
        found = np.bincount(at, minlength=len(numbers))
        weights = np.log(1 + (size - found + 0.5) / (found + 0.5)) * np.array(list(asked.values()))
        lengths = self._terms.lengths
        relative = lengths[places] / max(float(lengths[living].mean()), 1.0)
        matched = counts * (BM25_K1 + 1) / (counts + BM25_K1 * (1 - BM25_B + BM25_B * relative))
        scores = np.bincount(places, weights[at] * matched, minlength=len(living))
        return self._highest(scores.astype(np.float64), mask & (scores > 0), most)

    def by_meaning(self, vector: Sequence[float], mask: Mask, most: int) -> tuple[Places, Values]:
        """Return the units nearest to an embedding, with their cosine similarities."""
        wanted = mask & self._column("embedded")
        known = wanted.nonzero()[0]
        query = np.asarray(vector, dtype=np.float32)
        length = float(np.linalg.norm(query))
        scores = np.full(len(mask), -np.inf)
        if not len(known) or not length:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        query /= length
        many = len(known) > len(mask) // 2
        for begin in range(0, len(mask) if many else len(known), BLOCK):
            # A contiguous range is not copied before the conversion to floats.
            places = slice(begin, begin + BLOCK) if many else known[begin : begin + BLOCK]
            scores[places] = self._vectors.values[places].astype(np.float32) @ query * self._scales.values[places]
        if many:
            scores[~wanted] = -np.inf
        best = self._highest(scores, np.isfinite(scores), most)
        return best, scores[best]

    def columns(self, places: Places) -> Columns:
        """Return the units at the places as ranking reads them, in that order."""
        chosen = self._columns.values[places]
        begins, ends = self._stretch(places)
        terms = TermSequences(self._terms.values, self._terms.bounds, self._vocabulary).cut(begins, ends - begins)
        at, bounds = self._concepts.indexes(places)
        spoken = self._concepts.values[at]
        concepts = TermSequences(spoken["name"].astype(np.int32), bounds, self._concept_numbers)
        local = np.full(len(self._columns) + 1, -1, dtype=np.intp)
        local[places] = np.arange(len(places))
        return Columns(
            terms=terms,
            said_at=chosen["said_at"],
            conversations=chosen["conversation"].astype(np.int64),
            previous=local[self._preceding()[places]],
            kinds=chosen["kinds"],
            importance=chosen["importance"],
            named=chosen["named"],
            concepts=Concepts(concepts, spoken["weight"].astype(np.float32)),
            meanings=self._meanings(places, terms),
        )

    def in_order(self, *found: Places) -> Places:
        """Return the places without duplicates, in chronological order."""
        every = np.zeros(len(self._columns), dtype=np.bool_)
        every[np.concatenate(found)] = True
        return self._ordered(every.nonzero()[0]).astype(np.intp)

    def said_between(self, places: Places, since: datetime, until: datetime) -> Mask:
        """Return which of the units at the places were said in a period; `until` is exclusive."""
        said_at = self._column("said_at")[places]
        return (said_at >= since.timestamp()) & (said_at < until.timestamp())

    def has_elsewhere(self, conversation_id: UUID, before: datetime | None) -> bool:
        """Whether anything of another conversation is indexed, or of this one before that time."""
        here = self._column("conversation") == self.conversations.get(conversation_id, -1)
        if before is not None:
            here &= self._column("said_at") >= before.timestamp()
        return bool((self._living & ~here & ~self._are(WAITING)).any())

    def _stretch(self, places: Places) -> tuple[Places, Places]:
        """Return where the words of the units at the places begin and end, without their marks."""
        bounds = self._terms.bounds
        return bounds[places] + self._column("marks")[places], bounds[places + 1]

    def _meanings(self, places: Places, terms: TermSequences) -> WordMeanings:
        """Return the meanings of the words of the units at the places, caching new ones."""
        rows = self._word_rows.values
        at, bounds = self._word_lengths.indexes(places)
        missing = np.isnan(self._word_lengths.values[at[bounds[:-1]]]).nonzero()[0]
        if len(missing):
            texts = terms.taken(missing)
            found = lengths_of(Passages(texts, TermCounts(texts)), rows)
            self._word_lengths.values[self._word_lengths.indexes(places[missing])[0]] = found
        return WordMeanings(rows, self._word_lengths.values[at])

    def _highest(self, scores: Values, mask: Mask, most: int) -> Places:
        """Return the places with the highest scores, best first; of equal ones the newest."""
        places = mask.nonzero()[0]
        if len(places) > most:
            least = np.partition(scores[places], len(places) - most)[len(places) - most]
            places = places[scores[places] >= least]
        newest_first = self._ordered(places)[::-1]
        return newest_first[np.argsort(-scores[newest_first], kind="stable")][:most].astype(np.intp)

    def _ordered(self, places: Places) -> Places:
        """Return the places in chronological order."""
        ids = self._units.values[places]
        return places[np.lexsort((ids[:, 1], ids[:, 0], self._column("said_at")[places]))]

    def _preceding(self) -> Places:
        """Return for each unit the place of the message before it in its conversation; -1 if there is none."""
        if self._previous is None:
            said = self._ordered((self._living & ~self._are(WRITTEN)).nonzero()[0])
            conversations = self._column("conversation")[said]
            order = np.argsort(conversations, kind="stable")
            said, conversations = said[order], conversations[order]
            previous = np.full(len(self._columns), -1, dtype=np.intp)
            same = (conversations[1:] == conversations[:-1]).nonzero()[0] + 1
            previous[said[same]] = said[same - 1]
            self._previous = previous
        return self._previous
