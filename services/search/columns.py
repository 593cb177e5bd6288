"""Units as columns: what ranking reads of them, as arrays at places 0..n-1."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from services.search.hits import Unit
from services.search.meaning import WordMeanings
from services.search.sequences import Places, TermSequences
from services.search.term_matrix import Values
from services.text.clauses import closes_with_question
from services.text.features import FEATURES, Feature
from services.text.language import language_of
from services.text.questions import asks
from services.text.tokenizer import terms

Kinds = NDArray[np.uint16]

OF_FEATURE: Mapping[Feature, int] = {feature: 1 << at for at, feature in enumerate(FEATURES)}
CLOSES_ASKING, BY_ASSISTANT, WRITTEN, WAITING, ASKS = (1 << bit for bit in range(11, 16))
"""Bits of a unit: it ends with a question, the assistant said it, it was written as a memory, it is not indexed
yet, it asks something."""


@dataclass(frozen=True, slots=True)
class Concepts:
    """The concepts of which several texts speak (`services.text.concepts`).

    Attributes:
        names: Those of each text.
        weights: For each of their numbers how far the text speaks of it.
    """

    names: TermSequences
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, texts: Sequence[Mapping[str, float]]) -> "Concepts":
        """Number the concepts of texts."""
        weights = [weight for spoken in texts for weight in spoken.values()]
        return cls(TermSequences.of([list(spoken) for spoken in texts]), np.array(weights, dtype=np.float32))

    def weights_of(self, names: Sequence[str]) -> Values:
        """How far each text (row) speaks of each concept (column), no concept given twice."""
        columns = np.full(len(self.names.vocabulary) + 1, -1, dtype=np.intp)
        columns[self.names.numbered(names)] = np.arange(len(names))
        columns[-1] = -1
        at = columns[self.names.numbers]
        asked = (at >= 0).nonzero()[0]
        table = np.zeros((self.names.size, len(names)))
        table[self.names.rows[asked], at[asked]] = self.weights[asked]
        return table


@dataclass(frozen=True, slots=True)
class Columns:
    """The data of units that ranking reads, besides their texts.

    Attributes:
        terms: The terms of each unit's indexed text.
        said_at: Seconds since 1970.
        conversations: A number for each conversation; what belongs to none shares one.
        previous: The place of the unit before it in its conversation; -1 where that is not among these.
        kinds: Bits: `OF_FEATURE`, `CLOSES_ASKING`, `BY_ASSISTANT`, `WRITTEN`, `WAITING`, `ASKS`.
        importance: 0 to 1.
        named: Of questions, how many terms at the beginning name the speaker.
        concepts: Those of each text.
        meanings: Of the words of the texts' passages; None where they are yet to be looked up.
    """

    terms: TermSequences
    said_at: Values
    conversations: NDArray[np.int64]
    previous: Places
    kinds: Kinds
    importance: Values
    named: NDArray[np.uint8]
    concepts: Concepts
    meanings: WordMeanings | None = None

    @property
    def size(self) -> int:
        """How many units there are."""
        return len(self.kinds)

    def are(self, kind: int) -> NDArray[np.bool_]:
        """Mask of the units that have any of the bits."""
        found: NDArray[np.bool_] = (self.kinds & kind) != 0
        return found

    @classmethod
    def of(cls, units: Sequence[Unit]) -> "Columns":
        """Read the columns from units."""
        places = {unit.id: place for place, unit in enumerate(units)}
        kinds = [_kinds_of(unit) for unit in units]
        conversations: defaultdict[str, int] = defaultdict()
        conversations.default_factory = conversations.__len__
        return cls(
            terms=TermSequences.of([unit.terms for unit in units]),
            said_at=np.array([unit.created_at.timestamp() for unit in units], dtype=np.float64),
            conversations=np.array([conversations[unit.conversation_id] for unit in units], dtype=np.int64),
            previous=np.array([places.get(unit.previous or "", -1) for unit in units], dtype=np.intp),
            kinds=np.array(kinds, dtype=np.uint16),
            importance=np.array([unit.importance for unit in units], dtype=np.float64),
            named=np.array([_named(unit, kind) for unit, kind in zip(units, kinds, strict=True)], dtype=np.uint8),
            concepts=Concepts.of([unit.concepts for unit in units]),
        )


@cache
def features_of(kinds: int) -> frozenset[Feature]:
    """The features that a unit's bits name."""
    return frozenset(feature for feature in FEATURES if kinds & OF_FEATURE[feature])


def kinds_of(text: str, features: Iterable[Feature], *, by_assistant: bool, written: bool, waiting: bool) -> int:
    """The bits of a unit."""
    bits = sum(OF_FEATURE[feature] for feature in features)
    bits |= BY_ASSISTANT * by_assistant | WRITTEN * written | WAITING * waiting
    bits |= CLOSES_ASKING * closes_with_question(text)
    return bits | ASKS * asks(text, language_of([text]))


def _kinds_of(unit: Unit) -> int:
    return kinds_of(
        unit.text,
        unit.features,
        by_assistant=unit.by_assistant,
        written=unit.message_id is None,
        waiting=not unit.indexed,
    )


def _named(unit: Unit, kind: int) -> int:
    return max(0, len(unit.terms) - len(terms(unit.text))) if kind & ASKS else 0
