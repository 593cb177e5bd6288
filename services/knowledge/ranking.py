"""Rank the chunks that a search found, and decide which are relevant. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from services.knowledge.coverage import coverage
from services.knowledge.message_intent import manner_of, views_of
from services.knowledge.overlap import overlaps, wanted
from services.knowledge.word_forms import Vocabulary
from services.search.candidates import CandidateSet
from services.search.columns import Columns
from services.search.embedding_quality import EmbeddingQuality, cosine_floor
from services.search.hits import Unit
from services.search.queries import RecallQuery
from services.search.relevance import relevance
from services.search.term_matrix import Values
from services.text.language import Language, language_of
from services.text.tokenizer import terms

_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)

# The share of a question that a passage covers from which the base is asked about at all, and from which another
# passage may stand beside that one. Chinese is cut into words differently from text to text, so fewer can recur;
# where meaning is compared, it finds what words do not.
_OPENS: dict[Language, float] = {"en": 0.25, "zh": 0.2}
_FOLLOWS = 0.1
_OPENS_BESIDE_MEANING, _FOLLOWS_BESIDE = 0.6, 0.3
_COVERED, _MET, _MEANT, _LIKE = 0.5, 0.5, 0.5, 2.0
"""Weights beside the scores of the search, which count 1: how much of the question is said, in the same words, in
paraphrases, and by words near in meaning, and how alike passage and question are as wholes."""


@dataclass(frozen=True)
class Candidate:
    """A chunk found by a search."""

    chunk_id: UUID
    terms: tuple[str, ...]
    cosine: float | None
    """Cosine similarity to the question; None if not found by meaning."""
    waiting: bool = False
    """Whether it is not indexed yet, so that only words could find it."""
    concepts: Mapping[str, float] = field(default_factory=dict)
    """The concepts in it, with their weights (`services.text.concepts`)."""


@dataclass(frozen=True)
class Judged:
    """A ranked chunk."""

    chunk_id: UUID
    score: float
    """0 to 1; relative to the best one of its search."""
    coverage: float
    """Share of the question, by weight, that it covers; 0 to 1."""
    cosine: float | None


def judged(
    question: str,
    candidates: Sequence[Candidate],
    quality: Mapping[Language, EmbeddingQuality],
    *,
    by_words: bool,
) -> list[Judged]:
    """Return the chunks, best first.

    Each leg's scores are scaled to 0..1 among the chunks found. Words weigh 1, and meaning what the embedding is
    worth for the question's language, as in recall; to them comes how far each is about the question, in these
    words or in others. Without `by_words` the embedding alone counts.
    """
    if not candidates:
        return []
    found = CandidateSet(Columns.of([_unit(candidate) for candidate in candidates]), timedelta(0))
    names = tuple(dict.fromkeys(terms(question)))
    lexical = _scaled(found.matching_passages(names, found.weights(names))[0] if names else _zeros(found))
    dense = _dense(candidates, lexical)
    language = language_of([question])
    trust = quality[language].quality if language in quality else 0.0
    known = any(candidate.cosine is not None for candidate in candidates)
    query = RecallQuery(question, 1.0, "message")
    covered = coverage([query], found, 0.0, np.zeros(found.size, dtype=np.bool_))
    vocabularies = [Vocabulary.of(candidate.terms) for candidate in candidates]
    for view in views_of(question, manner_of(question)):
        shares = [overlap.coverage if overlap.shared else 0.0 for overlap in overlaps(wanted(view), vocabularies)]
        covered = np.maximum(covered, np.array(shares))
    if by_words or not known:
        weight = trust if known else 0.0
        scores = (lexical + weight * dense) / (1 + weight)
        scores = _scaled(scores + _COVERED * covered + _about(query, found))
    else:
        scores = dense
    order = np.argsort(-scores, kind="stable").tolist()
    return [
        Judged(candidates[at].chunk_id, float(scores[at]), float(covered[at]), candidates[at].cosine)
        for at in order
    ]


def relevant(found: Sequence[Judged], question: str, quality: Mapping[Language, EmbeddingQuality]) -> list[Judged]:
    """The relevant chunks; empty unless at least one is relevant by itself."""
    language = language_of([question])
    # The caller chose this base, so less evidence is needed.
    cosine = cosine_floor(quality, language)
    opens, follows = (_OPENS[language], _FOLLOWS) if cosine is None else (_OPENS_BESIDE_MEANING, _FOLLOWS_BESIDE)

    def near(one: Judged) -> bool:
        return cosine is not None and one.cosine is not None and one.cosine >= cosine

    if not any(one.coverage >= opens or near(one) for one in found):
        return []
    return [one for one in found if one.coverage >= follows or near(one)]


def _about(query: RecallQuery, found: CandidateSet) -> Values:
    """How far each chunk is about the question, as recall measures it."""
    about = relevance(
        [query],
        found.passages,
        found.units.concepts,
        meanings=None,
        previous=found.previous,
        talks=np.arange(found.size),
    )
    weighed: Values = _MET * about.met + _MEANT * about.by_meaning + _LIKE * about.likeness
    return weighed


def _dense(candidates: Sequence[Candidate], lexical: Values) -> Values:
    raw = np.array([np.nan if one.cosine is None else one.cosine for one in candidates], dtype=np.float64)
    known = ~np.isnan(raw)
    scaled = np.zeros(len(raw))
    if known.any():
        lowest, highest = float(raw[known].min()), float(raw[known].max())
        scaled[known] = (raw[known] - lowest) / (highest - lowest) if highest > lowest else 1.0
    # A chunk without a vector yet is judged by its words, at no disadvantage.
    waiting = np.array([one.waiting for one in candidates]) & ~known
    scaled[waiting] = lexical[waiting]
    return scaled


def _scaled(values: Values) -> Values:
    highest = float(values.max())
    return values / highest if highest > 0 else values


def _zeros(field: CandidateSet) -> Values:
    return np.zeros(field.size)


def _unit(candidate: Candidate) -> Unit:
    name = str(candidate.chunk_id)
    return Unit(name, name, "", _NO_TIME, "", candidate.terms, concepts=candidate.concepts)
