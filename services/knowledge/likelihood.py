"""How probable it is that a base answers a message, and that none does.

Each base has a score, and so has the case that no base is wanted; their softmax is the probability of each (a
conditional logit after McFadden, as in `services.search.likelihood`). The scores are weighted sums of what base
and message have in common, of what the message wants and of how it is worded;
`python -m benchmarks.routing_training` learns the weights (`likelihood.json`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.knowledge.evidence import Evidence
from services.knowledge.message_intent import MessageIntent, is_of_oneself
from services.knowledge.overlap import Overlap, overlaps, wanted
from services.knowledge.profile_match import Hit, Profiles
from services.knowledge.wording import wordings
from services.search.columns import Concepts
from services.search.logit import probabilities, stored_weights
from services.search.passages import Passages
from services.search.queries import RecallQuery
from services.search.relevance import relevance
from services.search.sequences import TermSequences
from services.search.term_matrix import TermCounts
from services.text.language import language_of
from services.text.questions import asks, asks_in_general, asks_of_oneself
from services.text.tokenizer import informative_terms

Values = NDArray[np.float64]

_BELIEVED = 12.0
"""What a cosine beyond the floor adds to a score, where the embedding understands the language. The weights are
learned beside the lexical embedder, which does not."""
_ABOUT = ("met", "by_words", "by_meaning", "likeness")
_COMPARED = ("met", "by_meaning", "likeness", "covered")
_BEST = ("met", "by_words", "by_meaning", "likeness", "covered", "keyword")
_MOST_KEYWORDS = 2.0
_MOST_DESCRIBED = 2.0


@dataclass(frozen=True)
class Closeness:
    """Similarity of a message to the bases, and the passages found for it."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    """By prefix the greatest cosine similarity of the message and a text of the profile."""
    floor: float = 1.0
    """Cosine from which two texts are about the same, with this embedding."""
    believed: bool = False
    """Whether the embedding is trusted with the language."""
    passages: Sequence[Evidence] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """Inputs of the scores.

    Attributes:
        bases: Values of each base, by name, in the order of the profiles.
        situation: Values of the message and of all bases together, by name.
        wording: `services.knowledge.wording.wordings` of the message.
        meant: Cosine beyond the floor of each base; 0 where the embedding is not believed.
    """

    bases: Mapping[str, Values]
    situation: Mapping[str, float]
    wording: frozenset[str]
    meant: Values


def likelihood(observed: Observed) -> Values:
    """For each base the probability that it answers the message; what is left to 1 is that of none."""
    weights = stored_weights("services.knowledge")
    scores = sum(weights["bases"][name] * values for name, values in observed.bases.items())
    nothing = sum(weights["situation"][name] * value for name, value in observed.situation.items())
    nothing += sum(weights["wording"].get(each, 0.0) for each in observed.wording)
    return probabilities(scores + _BELIEVED * observed.meant, nothing)


def observe(profiles: Profiles, views: Sequence[str], manner: MessageIntent, closeness: Closeness) -> Observed:
    """Collect the values from which probabilities are computed; there must be a base.

    Args:
        profiles: the bases.
        views: the message, and the clauses of it that ask (`message_intent.views_of`).
        manner: what the message wants.
        closeness: what was found for it.
    """
    message = views[0]
    prefixes = [profile.prefix for profile in profiles.all]
    table = _of_profiles(profiles, views) | _of_passages(prefixes, views, closeness.passages)
    cosines = np.array([closeness.cosines.get(prefix, 0.0) for prefix in prefixes])
    meaning = np.maximum(cosines - closeness.floor, 0.0)
    table["cosine"] = np.zeros(len(prefixes)) if closeness.believed else meaning
    for name in _COMPARED:
        values = table[name]
        highest = float(values.max())
        table[f"{name} of best"] = values / highest if highest > 0 else np.zeros(len(values))
        table[f"{name} ahead"] = _ahead(values)
    situation = _situation(message, manner) | {f"best {name}": float(table[name].max()) for name in _BEST}
    return Observed(
        table,
        situation | {"always": 1.0},
        wordings(message),
        meaning if closeness.believed else np.zeros(len(meaning)),
    )


def _of_profiles(profiles: Profiles, views: Sequence[str]) -> dict[str, Values]:
    found = [profiles.compare(view) for view in views]
    rows = []
    for profile in profiles.all:
        hits = [hits.get(profile.prefix, Hit()) for hits in found]
        keywords = min(max(hit.weight for hit in hits), _MOST_KEYWORDS)
        rows.append(
            {
                "keyword": min(keywords, 1.0),
                "second keyword": max(keywords - 1.0, 0.0),
                "heading": max((hit.heading for hit in hits if hit.heading_words > 1), default=0.0),
                "heading words": float(np.log1p(max(hit.heading_words for hit in hits))),
                "described": min(max(hit.described for hit in hits), _MOST_DESCRIBED),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _of_passages(prefixes: Sequence[str], views: Sequence[str], passages: Sequence[Evidence]) -> dict[str, Values]:
    """The best of each base's passages, by each measure; 0 for a base without passages."""
    found = {name: np.zeros(len(prefixes)) for name in (*_ABOUT, "covered", "shared")}
    bases = {prefix: place for place, prefix in enumerate(prefixes)}
    passages = [passage for passage in passages if passage.prefix in bases]
    if not passages:
        return found
    of = np.array([bases[passage.prefix] for passage in passages])
    units = TermSequences.of([passage.terms for passage in passages])
    about = relevance(
        [RecallQuery(views[0], 1.0, "message")],
        Passages(units, TermCounts(units)),
        Concepts.of([passage.concepts for passage in passages]),
        meanings=None,
        previous=np.full(len(passages), -1),
        talks=of,
    )
    for name in _ABOUT:
        np.maximum.at(found[name], of, getattr(about, name))
    vocabularies = [passage.vocabulary for passage in passages]
    best = [Overlap()] * len(prefixes)
    for view in views:
        for base, overlap in zip(of.tolist(), overlaps(wanted(view), vocabularies), strict=True):
            if overlap.shared and overlap.coverage > best[base].coverage:
                best[base] = overlap
    found["covered"] = np.array([overlap.coverage for overlap in best])
    found["shared"] = np.log1p([overlap.shared for overlap in best])
    return found


def _ahead(values: Values) -> Values:
    """How far each value is ahead of the highest other one; negative if it is behind."""
    if len(values) == 1:
        return np.zeros(1)
    second, first = np.partition(values, -2)[-2:]
    found: Values = values - np.where(values == first, second, first)
    return found


def _situation(message: str, manner: MessageIntent) -> dict[str, float]:
    language = language_of([message])
    return {
        f"wants {intent.name.lower()}": float(manner is intent)
        for intent in MessageIntent
        if intent is not MessageIntent.ELSEWHERE
    } | {
        "of oneself": float(is_of_oneself(message)),
        "chinese": float(language == "zh"),
        "asks": float(asks(message, language)),
        "in general": float(asks_in_general(message)),
        "asks of oneself": float(asks_of_oneself(message, language)),
        "words": float(np.log1p(len(informative_terms(message))) / 2),
        "characters": float(np.log1p(len(message))),
    }
