"""The order of what recall found: lexical and dense searches fused with what the neighbours say."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from services.llm.language import Language, language_of
from services.memory.duplicates import duplicates
from services.memory.field import Field, Values, matching
from services.memory.hits import Leg, LegShare, Ranked, Ranking, SearchList, Unit
from services.memory.parameters import RankingParameters
from services.memory.queries import RecallQuery
from services.memory.terms import informative_terms, terms

_DEFAULT = RankingParameters()
# What a message leaves to its neighbours to say counts a little less than what it says.
_BY_NEIGHBOURS = 0.8
_SENTENCE_END = re.compile(r"[。！？!?；;\n]+|\.\s")


@dataclass(frozen=True, slots=True)
class _Leg:
    """A leg's values at each place: `scaled` is 0..1, and `weight` is that of a value of 1 in the score."""

    name: Leg
    query: int | None
    weight: float
    scaled: Values
    raw: Values | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as the legs need it: its share of all weights, its terms with their weights in each unit."""

    place: int
    share: float
    quality: float
    names: tuple[str, ...]
    weights: Values
    frequencies: Values


def rank(
    queries: Sequence[RecallQuery],
    lists: Sequence[SearchList],
    units: Sequence[Unit],
    *,
    now: datetime,
    quality: Mapping[Language, float],
    parameters: RankingParameters = _DEFAULT,
) -> Ranking:
    """Rank the units by all that the searches and their neighbours say.

    Each list's scores are scaled to 0..1 within it (or stand for their ranks), weighed by its query and,
    if dense, by the `quality` of the embedding for the query's language. To them come the windows, the
    visits and the associations, which are computed from the units found; the first two weigh as much as
    neighbours turn out to be about the same. Importance and age (relative to `now`) shift the result a
    little. Of units that say the same all but the best are marked.

    A list may name units that are not given (erased in the meantime): they are passed over. A unit that
    no list names is ranked by its terms if it is not `indexed`, and left out if it is.

    Raises:
        ValueError: A list belongs to no query.
    """
    if any(not 0 <= found.query < len(queries) for found in lists):
        raise ValueError("A list of results belongs to no query.")
    named = {unit_id for found in lists for unit_id in found.scores}
    field = Field(
        [unit for unit in units if unit.id in named or not unit.indexed],
        timedelta(minutes=parameters.visit_gap_minutes),
    )
    if not field.size or not queries:
        return Ranking((), 0.0)
    asked = _asked(queries, field, quality)
    coherence = field.coherence(parameters.coherent_at, parameters.pair_prior)
    legs = _legs(asked, lists, field, coherence, parameters)
    scores = sum((leg.weight * leg.scaled for leg in legs), start=np.zeros(field.size))
    if parameters.association > 0:
        everything = {name for query in asked for name in query.names}
        shared = field.association(scores, parameters.seeds, everything)
        legs.append(_Leg("association", None, parameters.association, _scaled(shared, shared > 0, parameters)))
        scores = scores + parameters.association * legs[-1].scaled
    results = _results(field, legs, scores, queries, now, coherence, parameters)
    repeated = duplicates([result.unit for result in results], parameters.duplicate_overlap)
    marked = (replace(result, duplicate_of=repeated.get(result.unit.id)) for result in results)
    return Ranking(tuple(marked), coherence)


def _asked(queries: Sequence[RecallQuery], field: Field, quality: Mapping[Language, float]) -> list[_Asked]:
    total = sum(query.weight for query in queries) or 1.0
    found = []
    for place, query in enumerate(queries):
        counts = Counter(terms(query.text))
        names = tuple(counts)
        weights = np.array([counts[name] * field.weight(name) for name in names])
        trusted = min(1.0, max(0.0, quality.get(language_of([query.text]), 0.0)))
        table = field.frequencies_of(names)
        found.append(_Asked(place, query.weight / total, trusted, names, weights, table))
    return found


def _legs(
    asked: Sequence[_Asked],
    lists: Sequence[SearchList],
    field: Field,
    coherence: float,
    parameters: RankingParameters,
) -> list[_Leg]:
    window, visit = coherence * parameters.window, coherence * parameters.visit
    dense = sum(query.share * query.quality for query in asked)
    whole = (1.0 + dense) * (1.0 + window + visit)
    legs: list[_Leg] = []
    for query in asked:
        # The index's own scores only chose the units: they are those of its segments, each with statistics of
        # its own, and there are none of what is not indexed yet.
        raw = field.bm25(query.frequencies, query.weights)
        lexical = _scaled(raw, raw > 0, parameters)
        share = query.share / whole
        legs.append(_Leg("lexical", query.place, share, lexical, raw))
        near = matching(field.with_neighbours(query.frequencies), query.weights)
        legs.append(_Leg("window", query.place, share * window, _scaled(near, near > 0, parameters)))
        around = matching(field.over_visits(query.frequencies), query.weights)
        legs.append(_Leg("visit", query.place, share * visit, _scaled(around, around > 0, parameters)))
        if query.quality > 0:
            legs.extend(_dense_legs(query, lists, field, lexical, coherence, whole, parameters))
    return [leg for leg in legs if leg.weight > 0]


def _dense_legs(
    query: _Asked,
    lists: Sequence[SearchList],
    field: Field,
    lexical: Values,
    coherence: float,
    whole: float,
    parameters: RankingParameters,
) -> list[_Leg]:
    raw = _cosines(query, lists, field)
    known = ~np.isnan(raw)
    scaled = np.zeros(field.size)
    if known.any():
        lowest = float(raw[known].min())
        scaled = _scaled(np.where(known, raw - lowest, 0.0), known, parameters)
    # What has no vector yet is not to suffer from it: its words stand for it.
    waiting = np.array([not unit.indexed for unit in field.units]) & ~known
    scaled[waiting] = lexical[waiting]
    near = field.with_neighbours(scaled[:, np.newaxis])[:, 0]
    share = query.share * query.quality / whole
    return [
        _Leg("dense", query.place, share, scaled, raw),
        _Leg(
            "window_dense",
            query.place,
            share * coherence * parameters.window_dense,
            _scaled(near, near > 0, parameters),
        ),
    ]


def _cosines(query: _Asked, lists: Sequence[SearchList], field: Field) -> Values:
    """The dense search's own scores; NaN where it did not name the unit."""
    raw = np.full(field.size, np.nan)
    for found in lists:
        if found.query == query.place and found.leg == "dense":
            for unit_id, score in found.scores.items():
                if unit_id in field.places:
                    raw[field.places[unit_id]] = score
    return raw


def _scaled(values: Values, members: NDArray[np.bool_], how: RankingParameters) -> Values:
    """Values of 0 or more as shares of the highest; or by rank, 1 for the first and less for each after it.

    The ranks' formula is that of Cormack et al., "Reciprocal Rank Fusion", SIGIR 2009.
    """
    scaled = np.zeros(len(values))
    if not members.any():
        return scaled
    if how.fusion == "ranks":
        scaled[members] = (how.rrf_k + 1) / (how.rrf_k + _ranks(values[members]))
        return scaled
    highest = float(values[members].max())
    scaled[members] = values[members] / highest if highest > 0 else 1.0
    return scaled


def _ranks(values: Values) -> Values:
    """The rank of each value, from 1 for the highest; the first of equal ones is before the others."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


def _results(
    field: Field,
    legs: Sequence[_Leg],
    scores: Values,
    queries: Sequence[RecallQuery],
    now: datetime,
    coherence: float,
    parameters: RankingParameters,
) -> list[Ranked]:
    importance = np.array([1 + parameters.importance * (unit.importance - 0.5) for unit in field.units])
    age = np.array([_age_factor(unit, now, parameters) for unit in field.units])
    final = scores * importance * age
    coverage = _coverage(queries, field, coherence)
    ranks = [_ranks(leg.scaled) for leg in legs]
    cosines = np.full(field.size, np.nan)
    for leg in legs:
        if leg.name == "dense" and leg.raw is not None:
            cosines = np.fmax(cosines, leg.raw)
    results = []
    for position, place in enumerate(np.argsort(-final, kind="stable"), start=1):
        shares = tuple(
            _share(leg, rank, place) for leg, rank in zip(legs, ranks, strict=True) if leg.scaled[place] > 0
        )
        results.append(
            Ranked(
                unit=field.units[place],
                position=position,
                score=float(final[place]),
                legs=shares,
                importance_factor=float(importance[place]),
                age_factor=float(age[place]),
                coverage=float(coverage[place]),
                cosine=None if np.isnan(cosines[place]) else float(cosines[place]),
            )
        )
    return results


def _share(leg: _Leg, ranks: Values, place: int) -> LegShare:
    raw = None if leg.raw is None or np.isnan(leg.raw[place]) else float(leg.raw[place])
    return LegShare(leg.name, leg.query, int(ranks[place]), raw, float(leg.weight * leg.scaled[place]))


def _age_factor(unit: Unit, now: datetime, parameters: RankingParameters) -> float:
    days = max(0.0, (now - unit.created_at).total_seconds() / 86_400)
    kept: float = max(parameters.age_floor, 0.5 ** (days / parameters.half_life_days))
    return 1 - parameters.age * (1 - kept) / (1 - parameters.age_floor)


def _coverage(queries: Sequence[RecallQuery], field: Field, coherence: float) -> Values:
    best = np.zeros(field.size)
    for names in {names for query in queries for names in _questions(query.text)}:
        weights = np.array([field.weight(name) for name in names])
        held = field.frequencies_of(names)
        own = (held > 0) @ weights / weights.sum()
        around = (field.with_neighbours(held) > 0) @ weights / weights.sum()
        best = np.maximum(best, np.maximum(own, _BY_NEIGHBOURS * coherence * around))
    return best


def _questions(text: str) -> list[tuple[str, ...]]:
    """The informative terms of the text and of its sentences: what is asked may be one of many.

    A sentence with one such term is passed over, since whatever holds that term would cover it.
    """
    sentences = [informative_terms(sentence) for sentence in _SENTENCE_END.split(text)]
    several = [names for names in sentences if len(names) > 1]
    return [tuple(sorted(names)) for names in [informative_terms(text), *several] if names]
