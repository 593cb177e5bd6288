"""The order of what recall found: lexical and dense searches fused with what the neighbours say."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from services.search.candidates import CandidateSet
from services.search.columns import BY_ASSISTANT, OF_FEATURE, WRITTEN, Columns
from services.search.duplicates import duplicates
from services.search.hits import LegShare, Ranked, Ranking, SearchList, Unit
from services.search.legs import (
    ScoredLeg,
    Situation,
    asked_queries,
    echoing_units,
    legs_of,
    scaled_to_best,
)
from services.search.likelihood import Observed, likelihood, observe
from services.search.parameters import RankingParameters
from services.search.queries import RecallQuery
from services.search.relevance import Relevance, relevance
from services.search.sequences import Places
from services.search.term_matrix import Values
from services.search.versions import newer_versions
from services.text.features import expected
from services.text.language import Language, language_of
from services.text.questions import asks, asks_in_general, is_about_oneself, is_about_the_assistant

_DEFAULT = RankingParameters()
# Beyond these nobody asks why.
_EXPLAINED = 40
# So far down two versions of a fact are looked for; comparing is quadratic.
_VERSIONED = 20
_AHEAD = 1 + 1e-6
# Terms of a message that leaves its subject to what it replies to.
_SHORT_REPLY = 60


@dataclass(frozen=True, slots=True)
class _Factors:
    """By what the sum of the legs is multiplied, for each unit."""

    importance: Values
    age: Values
    kind: Values


@dataclass(frozen=True)
class Scored:
    """Scores of units for some queries, at their places."""

    final: Values
    observed: Observed
    """Input of `likelihood`."""
    coherence: float
    _names: tuple[str, ...]
    _legs: Sequence[ScoredLeg]
    _factors: _Factors
    _relevance: Values
    _cosines: Values
    _echoing: NDArray[np.bool_]
    _parameters: RankingParameters

    def best(self, number: int, times: Values | float = 1.0) -> Places:
        """The places of the best units, best first; `times` weighs each of them."""
        return np.argsort(-self.final * times, kind="stable")[:number].astype(np.intp)

    @cached_property
    def likelihood(self) -> Values:
        """The probability of each that it bears on the message."""
        return likelihood(self.observed)

    def likeliest(self, number: int) -> Places:
        """The places of those that most likely bear on the message, the likeliest first."""
        return np.argsort(-self.likelihood, kind="stable")[:number].astype(np.intp)

    def ranking(self, units: Mapping[int, Unit]) -> Ranking:
        """Rank the units at the places given; what has no unit is left out."""
        final = self.final.copy()
        order = [place for place in self.best(len(final)).tolist() if place in units]
        versions = _newer_first([units[place] for place in order[:_VERSIONED]], order, final, self._names)
        order = sorted(order, key=lambda place: -final[place])
        ordered = np.array(order, dtype=np.intp)
        repeated = duplicates([units[place] for place in order], self._parameters.duplicate_overlap)
        shares = _shares(self._legs, ordered[:_EXPLAINED])
        factors = self._factors
        # Python's own numbers, all at once: an array gives them out singly at ten times the cost.
        columns = [
            values[ordered].tolist()
            for values in (
                final,
                factors.importance,
                factors.age,
                factors.kind,
                self._relevance,
                self.likelihood,
                self._cosines,
            )
        ]
        results = tuple(
            Ranked(
                unit=(unit := units[place]),
                position=position,
                score=score,
                legs=shares[position - 1] if position <= _EXPLAINED else (),
                importance_factor=important,
                age_factor=aged,
                kind_factor=kind,
                relevance=relevant,
                likelihood=probable,
                cosine=None if math.isnan(cosine) else cosine,
                duplicate_of=repeated.get(unit.id),
                version_of=units[versions[place]].id if place in versions else None,
                echo=bool(self._echoing[place]),
            )
            for position, (place, score, important, aged, kind, relevant, probable, cosine) in enumerate(
                zip(order, *columns, strict=True), start=1
            )
        )
        return Ranking(results, self.coherence, len(final))


def rank(
    queries: Sequence[RecallQuery],
    lists: Sequence[SearchList],
    units: Sequence[Unit],
    *,
    now: datetime,
    quality: Mapping[Language, float],
    parameters: RankingParameters = _DEFAULT,
) -> Ranking:
    """Rank the units that searches found, as `score` weighs them; of duplicates all but the best are
    marked.

    A list may name units that are not given (erased in the meantime): they are passed over. A unit that
    no list names is ranked by its terms if it is not `indexed`, and left out if it is.

    Raises:
        ValueError: A list belongs to no query.
    """
    if any(not 0 <= found.query < len(queries) for found in lists):
        raise ValueError("A list of results belongs to no query.")
    named = {unit_id for found in lists for unit_id in found.scores}
    kept = [unit for unit in units if unit.id in named or not unit.indexed]
    if not kept or not queries:
        return Ranking((), 0.0)
    cosines = np.full((len(queries), len(kept)), np.nan)
    for found in lists:
        if found.leg == "dense":
            cosines[found.query] = [found.scores.get(unit.id, np.nan) for unit in kept]
    scored = score(queries, cosines, Columns.of(kept), now=now, quality=quality, parameters=parameters)
    return scored.ranking(dict(enumerate(kept)))


def score(
    queries: Sequence[RecallQuery],
    cosines: Values,
    units: Columns,
    *,
    now: datetime,
    quality: Mapping[Language, float],
    parameters: RankingParameters = _DEFAULT,
) -> Scored:
    """Say what units are worth, by all that the queries, their embeddings and their neighbours say.

    Each leg's scores are scaled to 0..1 within it (or stand for their ranks), weighed by its query and,
    if dense, by the `quality` of the embedding for the query's language. To them come the windows, the
    visits and the associations, which are computed from the units found; the first two weigh as much as
    neighbours turn out to be about the same. Importance and age (relative to `now`) shift the result a
    little. A unit that only asks what a query asks has a small part of a full match, and speaks for no neighbour.

    Args:
        queries: at least one, the message first.
        cosines: for each query (row) the similarity of each unit; NaN where the unit is not among the nearest.
        units: at least one.
        now: from which age is counted.
        quality: of the embedding, by language.
        parameters: weights.
    """
    field = CandidateSet(units, timedelta(minutes=parameters.visit_gap_minutes))
    asked = asked_queries(queries, field, quality)
    coherence = field.coherence(parameters.coherent_at, parameters.pair_prior)
    echoing = echoing_units(queries, asked, field)
    about = _relevance_of(queries, field, parameters)
    legs = legs_of(asked, cosines, Situation(field, coherence, echoing, parameters))
    if parameters.relevance > 0:
        legs.append(ScoredLeg("relevance", None, parameters.relevance, np.where(echoing, 0.0, about.met)))
    scores = sum((leg.weight * leg.scaled for leg in legs), start=np.zeros(field.size))
    if parameters.association > 0:
        everything = {name for query in asked for name in query.names}
        shared = field.association(np.where(echoing, 0.0, scores), parameters.seeds, everything)
        legs.append(
            ScoredLeg("association", None, parameters.association, scaled_to_best(shared, shared > 0, parameters))
        )
        scores = scores + parameters.association * legs[-1].scaled
    factors = _Factors(
        importance=1 + parameters.importance * (units.importance - 0.5),
        age=_age_factors(units, now, parameters),
        kind=_kind_factors(units, queries[0].text, parameters),
    )
    final = scores * factors.importance * factors.age * factors.kind
    return Scored(
        final=final,
        observed=observe(queries[0].text, units, about, matched=asked[0].matched, scores=final, echoing=echoing),
        coherence=coherence,
        _names=asked[0].names,
        _legs=legs,
        _factors=factors,
        _relevance=about.met,
        _cosines=_nearest(legs, field.size),
        _echoing=echoing,
        _parameters=parameters,
    )


def _relevance_of(queries: Sequence[RecallQuery], field: CandidateSet, parameters: RankingParameters) -> Relevance:
    """How the units bear on the message, with what they answer and reply to."""
    message, units = queries[0].text, field.units
    return relevance(
        queries,
        field.passages,
        units.concepts,
        meanings=units.meanings,
        previous=field.previous,
        talks=units.conversations,
        by_concept=parameters.of_general_questions if asks_in_general(message) else 1.0,
        answers_of=_answers(field) if is_about_the_assistant(message, language_of([message])) else None,
        replies_to=_replies(field),
    )


def _nearest(legs: Sequence[ScoredLeg], size: int) -> Values:
    """The highest cosine of each unit; NaN where no dense leg knows it."""
    nearest = np.full(size, np.nan)
    for leg in legs:
        if leg.name == "dense" and leg.raw is not None:
            nearest = np.fmax(nearest, leg.raw)
    return nearest


def _answers(field: CandidateSet) -> Places:
    """For each answer of the assistant the place of the message that it answers; else -1."""
    return np.where(field.units.are(BY_ASSISTANT), field.previous, -1)


def _replies(field: CandidateSet) -> Places:
    """For each short message of a user the place of the assistant's one that it replies to; else -1."""
    by_assistant = field.units.are(BY_ASSISTANT)
    replying = (field.previous >= 0) & ~by_assistant & (field.lengths <= _SHORT_REPLY)
    return np.where(replying & by_assistant[field.previous], field.previous, -1)


def _newer_first(
    units: Sequence[Unit], order: Sequence[int], final: Values, asked: Sequence[str]
) -> dict[int, int]:
    """Let the newest of several versions of a fact change places with the best of them.

    Returns for the place of each older one that of the newest.
    """
    found: dict[int, int] = {}
    for older, newer in newer_versions(units, asked).items():
        old, new = order[older], order[newer]
        found[old] = new
        best, worst = max(final[old], final[new]), min(final[old], final[new])
        final[new], final[old] = best * _AHEAD, worst if worst < best else best
    return found


def _shares(legs: Sequence[ScoredLeg], places: Places) -> list[tuple[LegShare, ...]]:
    """The contribution of each leg to each place."""
    if not legs:
        return [()] * len(places)
    scaled = np.stack([leg.scaled for leg in legs])
    ranks = np.empty(scaled.shape, dtype=np.intp)
    every = np.arange(1, scaled.shape[1] + 1)[np.newaxis]
    np.put_along_axis(ranks, np.argsort(-scaled, axis=1, kind="stable"), every, axis=1)
    weights = np.array([leg.weight for leg in legs])
    unknown = np.full(scaled.shape[1], np.nan)
    raw = np.stack([unknown if leg.raw is None else leg.raw for leg in legs])
    # Python's own numbers, all at once.
    columns = (ranks, raw, weights[:, np.newaxis] * scaled)
    of_places = zip(*(column[:, places].T.tolist() for column in columns), strict=True)
    return [
        tuple(
            LegShare(leg.name, leg.query, rank_, None if math.isnan(known) else known, contribution)
            for leg, rank_, known, contribution in zip(legs, *of_legs, strict=True)
            if contribution > 0
        )
        for of_legs in of_places
    ]


def _kind_factors(units: Columns, question: str, parameters: RankingParameters) -> Values:
    """How likely each unit answers a question at all, by what kind of text it is."""
    language = language_of([question])
    wanted = expected(question, language) if asks(question, language) else frozenset()
    own = is_about_oneself(question, language)
    found = np.select(
        [units.are(BY_ASSISTANT), units.are(WRITTEN), ~units.are(OF_FEATURE["states"])],
        [
            1.0 if is_about_the_assistant(question, language) else parameters.by_assistant,
            parameters.written,
            parameters.only_asks,
        ],
        np.where(own & units.are(OF_FEATURE["oneself"]), parameters.oneself, 1.0),
    )
    found[units.are(sum(OF_FEATURE[kind] for kind in wanted))] *= parameters.fitting
    found[units.are(OF_FEATURE["corrects"])] *= parameters.corrects
    return found


def _age_factors(units: Columns, now: datetime, parameters: RankingParameters) -> Values:
    days = (now.timestamp() - units.said_at).clip(min=0) / 86_400
    kept = np.maximum(parameters.age_floor, 0.5 ** (days / parameters.half_life_days))
    factors: Values = 1 - parameters.age * (1 - kept) / (1 - parameters.age_floor)
    return factors
