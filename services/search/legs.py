"""The legs of a ranking: what each search, and the neighbours of what it found, say of each unit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.search.candidates import CandidateSet, matching
from services.search.columns import WAITING
from services.search.hits import Leg
from services.search.parameters import RankingParameters
from services.search.queries import RecallQuery
from services.search.question_repeats import repeated_questions
from services.search.term_matrix import Values
from services.text.language import Language, language_of
from services.text.tokenizer import terms

_ECHO = 0.3
"""Share of a full match that a repeated question keeps, so that it is still found by “did I ask this before?”."""


@dataclass(frozen=True, slots=True)
class ScoredLeg:
    """A leg's values at each place: `scaled` is 0..1, and `weight` is that of a value of 1 in the score."""

    name: Leg
    query: int | None
    weight: float
    scaled: Values
    raw: Values | None = None


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query as the legs need it: its share of all weights, its terms with their weights, the units by them."""

    place: int
    share: float
    quality: float
    names: tuple[str, ...]
    weights: Values
    matched: Values
    """How well the best passage of each unit matches."""
    frequencies: Values
    """How often that passage holds each term."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Input of every leg: the units, the trust in neighbours, and which units only repeat the question."""

    field: CandidateSet
    coherence: float
    repeated_questions: NDArray[np.bool_]
    parameters: RankingParameters


def asked_queries(
    queries: Sequence[RecallQuery], field: CandidateSet, quality: Mapping[Language, float]
) -> list[AskedQuery]:
    """Prepare the queries: their terms, and how well the passages of each unit match them."""
    total = sum(query.weight for query in queries) or 1.0
    found = []
    for place, query in enumerate(queries):
        counts = Counter(terms(query.text))
        names = tuple(counts)
        weights = np.array([counts[name] for name in names]) * field.weights(names)
        trusted = min(1.0, max(0.0, quality.get(language_of([query.text]), 0.0)))
        matched, table = field.matching_passages(names, weights)
        found.append(AskedQuery(place, query.weight / total, trusted, names, weights, matched, table))
    return found


def echoing_units(
    queries: Sequence[RecallQuery], asked: Sequence[AskedQuery], field: CandidateSet
) -> NDArray[np.bool_]:
    """Mark the units that only repeat the question of a query."""
    found = np.zeros(field.size, dtype=np.bool_)
    for query in asked:
        # What was said before it holds too much to tell.
        if queries[query.place].kind != "context":
            found |= repeated_questions(query.names, query.frequencies, field)
    return found


def legs_of(asked: Sequence[AskedQuery], cosines: Values, at: Situation) -> list[ScoredLeg]:
    """Score the units for each query by words, windows, visits and vectors."""
    field, coherence, parameters = at.field, at.coherence, at.parameters
    window, visit = coherence * parameters.window, coherence * parameters.visit
    dense = sum(query.share * query.quality for query in asked)
    whole = (1.0 + dense) * (1.0 + window + visit)
    legs: list[ScoredLeg] = []
    for query in asked:
        # The index's own scores only chose the units: they are those of its segments, each with statistics of
        # its own, and there are none of what is not indexed yet.
        raw = query.matched
        lexical = scaled_to_best(raw, (raw > 0) & ~at.repeated_questions, parameters)
        lexical[at.repeated_questions & (raw > 0)] = _ECHO
        answering = np.where(at.repeated_questions[:, np.newaxis], 0.0, query.frequencies)
        share = query.share / whole
        legs.append(ScoredLeg("lexical", query.place, share, lexical, raw))
        if window > 0:
            near = matching(field.with_neighbours(answering), query.weights)
            legs.append(
                ScoredLeg("window", query.place, share * window, scaled_to_best(near, near > 0, parameters))
            )
        if visit > 0:
            around = matching(field.over_visits(answering), query.weights)
            legs.append(
                ScoredLeg("visit", query.place, share * visit, scaled_to_best(around, around > 0, parameters))
            )
        if query.quality > 0:
            legs.extend(_dense_legs(query, cosines[query.place], lexical, whole, at))
    return [leg for leg in legs if leg.weight > 0]


def _dense_legs(query: AskedQuery, raw: Values, lexical: Values, whole: float, at: Situation) -> list[ScoredLeg]:
    field, parameters = at.field, at.parameters
    known = ~np.isnan(raw)
    scaled = np.zeros(field.size)
    if known.any():
        lowest = float(raw[known].min())
        scaled = scaled_to_best(np.where(known, raw - lowest, 0.0), known & ~at.repeated_questions, parameters)
    # What has no vector yet is not to suffer from it: its words stand for it.
    waiting = field.units.are(WAITING) & ~known
    scaled[waiting] = lexical[waiting]
    answering = np.where(at.repeated_questions, 0.0, scaled)
    scaled[at.repeated_questions & known] = _ECHO
    share = query.share * query.quality / whole
    legs = [ScoredLeg("dense", query.place, share, scaled, raw)]
    around = share * at.coherence * parameters.window_dense
    if around > 0:
        near = field.with_neighbours(answering)
        legs.append(ScoredLeg("window_dense", query.place, around, scaled_to_best(near, near > 0, parameters)))
    return legs


def scaled_to_best(values: Values, members: NDArray[np.bool_], how: RankingParameters) -> Values:
    """Values of 0 or more as shares of the highest; or by rank, 1 for the first and less for each after it.

    The ranks' formula is that of Cormack et al., "Reciprocal Rank Fusion", SIGIR 2009.
    """
    scaled = np.zeros(len(values))
    if not members.any():
        return scaled
    if how.fusion == "ranks":
        scaled[members] = (how.rrf_k + 1) / (how.rrf_k + ranks_of(values[members]))
        return scaled
    highest = float(values[members].max())
    scaled[members] = values[members] / highest if highest > 0 else 1.0
    return scaled


def ranks_of(values: Values) -> Values:
    """The rank of each value, from 1 for the highest; the first of equal ones is before the others."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
