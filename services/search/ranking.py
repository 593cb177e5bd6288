"""The order of what recall found: lexical and dense searches fused with what the neighbours say."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from services.search.candidates import CandidateSet, matching
from services.search.columns import BY_ASSISTANT, OF_FEATURE, WAITING, WRITTEN, Columns
from services.search.duplicates import duplicates
from services.search.hits import Leg, LegShare, Ranked, Ranking, SearchList, Unit
from services.search.likelihood import Observed, likelihood, observe
from services.search.parameters import RankingParameters
from services.search.queries import RecallQuery
from services.search.question_repeats import repeated_questions
from services.search.relevance import relevance
from services.search.sequences import Places
from services.search.term_matrix import Values
from services.search.versions import newer_versions
from services.text.features import expected
from services.text.language import Language, language_of
from services.text.questions import asks, asks_in_general, is_about_oneself, is_about_the_assistant
from services.text.tokenizer import terms

_DEFAULT = RankingParameters()
# Beyond these nobody asks why.
_EXPLAINED = 40
# So far down two versions of a fact are looked for; comparing is quadratic.
_VERSIONED = 20
_AHEAD = 1 + 1e-6
# Of a full match: a question whether something was asked before still finds it.
_ECHO = 0.3
# Terms of a message that leaves its subject to what it replies to.
_SHORT_REPLY = 60


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
class _Factors:
    """By what the sum of the legs is multiplied, for each unit."""

    importance: Values
    age: Values
    kind: Values


@dataclass(frozen=True, slots=True)
class _Situation:
    """What all legs need: the units, how much neighbours are trusted, and which units only ask the same."""

    field: CandidateSet
    coherence: float
    repeated_questions: NDArray[np.bool_]
    parameters: RankingParameters


@dataclass(frozen=True)
class Scored:
    """What units are worth for some queries, at their places."""

    final: Values
    observed: Observed
    """What `likelihood` follows from."""
    coherence: float
    _names: tuple[str, ...]
    _legs: Sequence[_Leg]
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
    asked = _asked(queries, field, quality)
    coherence = field.coherence(parameters.coherent_at, parameters.pair_prior)
    echoing = _echoing(queries, asked, field)
    language = language_of([queries[0].text])
    about = relevance(
        queries,
        field.passages,
        units.concepts,
        meanings=units.meanings,
        previous=field.previous,
        talks=np.unique(units.conversations, return_inverse=True)[1].astype(np.intp),
        by_concept=parameters.of_general_questions if asks_in_general(queries[0].text) else 1.0,
        answers_of=_answers(field) if is_about_the_assistant(queries[0].text, language) else None,
        replies_to=_replies(field),
    )
    legs = _legs(asked, cosines, _Situation(field, coherence, echoing, parameters))
    if parameters.relevance > 0:
        legs.append(_Leg("relevance", None, parameters.relevance, np.where(echoing, 0.0, about.met)))
    scores = sum((leg.weight * leg.scaled for leg in legs), start=np.zeros(field.size))
    if parameters.association > 0:
        everything = {name for query in asked for name in query.names}
        shared = field.association(np.where(echoing, 0.0, scores), parameters.seeds, everything)
        legs.append(_Leg("association", None, parameters.association, _scaled(shared, shared > 0, parameters)))
        scores = scores + parameters.association * legs[-1].scaled
    factors = _Factors(
        importance=1 + parameters.importance * (units.importance - 0.5),
        age=_age_factors(units, now, parameters),
        kind=_kind_factors(units, queries[0].text, parameters),
    )
    nearest = np.full(field.size, np.nan)
    for leg in legs:
        if leg.name == "dense" and leg.raw is not None:
            nearest = np.fmax(nearest, leg.raw)
    final = scores * factors.importance * factors.age * factors.kind
    return Scored(
        final=final,
        observed=observe(queries[0].text, units, about, matched=asked[0].matched, scores=final, echoing=echoing),
        coherence=coherence,
        _names=asked[0].names,
        _legs=legs,
        _factors=factors,
        _relevance=about.met,
        _cosines=nearest,
        _echoing=echoing,
        _parameters=parameters,
    )


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


def _asked(queries: Sequence[RecallQuery], field: CandidateSet, quality: Mapping[Language, float]) -> list[_Asked]:
    total = sum(query.weight for query in queries) or 1.0
    found = []
    for place, query in enumerate(queries):
        counts = Counter(terms(query.text))
        names = tuple(counts)
        weights = np.array([counts[name] for name in names]) * field.weights(names)
        trusted = min(1.0, max(0.0, quality.get(language_of([query.text]), 0.0)))
        matched, table = field.matching_passages(names, weights)
        found.append(_Asked(place, query.weight / total, trusted, names, weights, matched, table))
    return found


def _echoing(queries: Sequence[RecallQuery], asked: Sequence[_Asked], field: CandidateSet) -> NDArray[np.bool_]:
    found = np.zeros(field.size, dtype=np.bool_)
    for query in asked:
        # What was said before it holds too much to tell.
        if queries[query.place].kind != "context":
            found |= repeated_questions(query.names, query.frequencies, field)
    return found


def _legs(asked: Sequence[_Asked], cosines: Values, at: _Situation) -> list[_Leg]:
    field, coherence, parameters = at.field, at.coherence, at.parameters
    window, visit = coherence * parameters.window, coherence * parameters.visit
    dense = sum(query.share * query.quality for query in asked)
    whole = (1.0 + dense) * (1.0 + window + visit)
    legs: list[_Leg] = []
    for query in asked:
        # The index's own scores only chose the units: they are those of its segments, each with statistics of
        # its own, and there are none of what is not indexed yet.
        raw = query.matched
        lexical = _scaled(raw, (raw > 0) & ~at.repeated_questions, parameters)
        lexical[at.repeated_questions & (raw > 0)] = _ECHO
        answering = np.where(at.repeated_questions[:, np.newaxis], 0.0, query.frequencies)
        share = query.share / whole
        legs.append(_Leg("lexical", query.place, share, lexical, raw))
        if window > 0:
            near = matching(field.with_neighbours(answering), query.weights)
            legs.append(_Leg("window", query.place, share * window, _scaled(near, near > 0, parameters)))
        if visit > 0:
            around = matching(field.over_visits(answering), query.weights)
            legs.append(_Leg("visit", query.place, share * visit, _scaled(around, around > 0, parameters)))
        if query.quality > 0:
            legs.extend(_dense_legs(query, cosines[query.place], lexical, whole, at))
    return [leg for leg in legs if leg.weight > 0]


def _dense_legs(query: _Asked, raw: Values, lexical: Values, whole: float, at: _Situation) -> list[_Leg]:
    field, parameters = at.field, at.parameters
    known = ~np.isnan(raw)
    scaled = np.zeros(field.size)
    if known.any():
        lowest = float(raw[known].min())
        scaled = _scaled(np.where(known, raw - lowest, 0.0), known & ~at.repeated_questions, parameters)
    # What has no vector yet is not to suffer from it: its words stand for it.
    waiting = field.units.are(WAITING) & ~known
    scaled[waiting] = lexical[waiting]
    answering = np.where(at.repeated_questions, 0.0, scaled)
    scaled[at.repeated_questions & known] = _ECHO
    share = query.share * query.quality / whole
    legs = [_Leg("dense", query.place, share, scaled, raw)]
    around = share * at.coherence * parameters.window_dense
    if around > 0:
        near = field.with_neighbours(answering)
        legs.append(_Leg("window_dense", query.place, around, _scaled(near, near > 0, parameters)))
    return legs


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


def _shares(legs: Sequence[_Leg], places: Places) -> list[tuple[LegShare, ...]]:
    """What each leg gave to each of the places."""
    shares: list[list[LegShare]] = [[] for _ in places]
    for leg in legs:
        scaled = leg.scaled[places]
        giving = np.flatnonzero(scaled > 0)
        ranks = _ranks(leg.scaled)[places[giving]].astype(np.intp).tolist()
        given = (leg.weight * scaled[giving]).tolist()
        raw = [None] * len(given) if leg.raw is None else leg.raw[places[giving]].tolist()
        for at, rank_, known, contribution in zip(giving.tolist(), ranks, raw, given, strict=True):
            own = None if known is None or math.isnan(known) else known
            shares[at].append(LegShare(leg.name, leg.query, rank_, own, contribution))
    return [tuple(each) for each in shares]


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
