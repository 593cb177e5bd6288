"""Decide which bases probably answer a message. Pure; the numbers were tuned on the routing set in `benchmarks/`.

A base collects points for what it shares with the message; how many it needs depends on what the message wants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.knowledge.base import BaseProfile
from services.knowledge.evidence import Evidence
from services.knowledge.message_intent import MessageIntent
from services.knowledge.overlap import Overlap, overlaps, wanted
from services.knowledge.profile_match import Hit, Profiles

_KEYWORD = 0.5
_SECOND_KEYWORD = 0.25
_HEADING = 0.2
_HEADING_OF_SEVERAL_WORDS = 0.45
_DESCRIBED = 0.05
_MOST_DESCRIBED = 2.0
_PASSAGE = 0.7
_PASSAGE_WITH_SEVERAL_WORDS = 1.0
_LEAST_COVERED = 0.25
"""Smallest share of the question that a base's best passage must cover when nothing else points to the base."""
_MEANING = 0.5
"""Weight of a cosine beyond the floor, where the embedding is not known to understand the language."""
_MEANING_BELIEVED = 1.5

_SURE_BY_PROFILE = 0.2
"""Points above the threshold, and above the next base, that decide without a search in the documents."""
_BESIDE = 0.6
"""The share of the best base's points, and of those needed, with which another base may contribute passages."""
_BESIDE_NEEDED = 0.8
_MOST_BESIDE = 2


@dataclass(frozen=True)
class Decision:
    """The base that fits best, and others that may have the answer as well."""

    profile: BaseProfile
    confidence: float
    reason: str
    also: tuple[BaseProfile, ...] = ()


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


def by_profile(profiles: Profiles, views: Sequence[str], manner: MessageIntent) -> Decision | None:
    """The base that a keyword of the message names without doubt; None if the documents must be searched.

    Args:
        profiles: the bases.
        views: the message, and the clauses of it that ask (`manner.views_of`).
        manner: what the message wants.
    """
    points, reasons = _points(profiles, views, Closeness())
    decision = _best(profiles, points, reasons, manner.needed + _SURE_BY_PROFILE)
    if decision is None or not reasons[decision.profile.prefix].startswith("keywords"):
        return None
    ahead = points[decision.profile.prefix] - max((points[other.prefix] for other in decision.also), default=0.0)
    return decision if ahead >= _SURE_BY_PROFILE else None


def by_closeness(
    profiles: Profiles, views: Sequence[str], manner: MessageIntent, closeness: Closeness
) -> Decision | None:
    """The bases that fit all evidence, or None. Arguments as for `by_profile`."""
    points, reasons = _points(profiles, views, closeness)
    return _best(profiles, points, reasons, manner.needed)


def _best(
    profiles: Profiles, points: Mapping[str, float], reasons: Mapping[str, str], needed: float
) -> Decision | None:
    ordered = sorted((profile for profile in profiles.all), key=lambda profile: -points.get(profile.prefix, 0.0))
    if not ordered or (most := points.get(ordered[0].prefix, 0.0)) < needed:
        return None
    enough = max(_BESIDE * most, _BESIDE_NEEDED * needed)
    also = tuple(each for each in ordered[1 : 1 + _MOST_BESIDE] if points.get(each.prefix, 0.0) >= enough)
    return Decision(ordered[0], round(min(0.99, 0.5 + most / 3), 2), reasons[ordered[0].prefix], also)


def _points(
    profiles: Profiles, views: Sequence[str], closeness: Closeness
) -> tuple[dict[str, float], dict[str, str]]:
    """Points of each base and their reasons, by prefix, for the part of the message that scores highest."""
    points: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for view in views:
        hits, passages = profiles.compare(view), _passages(view, closeness.passages)
        for prefix in hits.keys() | passages.keys() | closeness.cosines.keys():
            hit, passage = hits.get(prefix, Hit()), passages.get(prefix, Overlap())
            meaning = max(0.0, closeness.cosines.get(prefix, 0.0) - closeness.floor)
            sure = hit.keywords or hit.heading_words > 1 or (closeness.believed and meaning)
            if not sure and passage.coverage < _LEAST_COVERED:
                continue
            each = _of_profile(hit) + _of_passage(passage)
            each += meaning * (_MEANING_BELIEVED if closeness.believed else _MEANING)
            if each > points.get(prefix, 0.0):
                points[prefix], reasons[prefix] = each, _reason(hit, passage)
    return points, reasons


def _passages(view: str, found: Sequence[Evidence]) -> dict[str, Overlap]:
    best: dict[str, Overlap] = {}
    together = overlaps(wanted(view), [each.vocabulary for each in found])
    for each, overlap in zip(found, together, strict=True):
        best[each.prefix] = max(best.get(each.prefix, Overlap()), overlap, key=_of_passage)
    return best


def _of_profile(hit: Hit) -> float:
    second = max(0.0, min(hit.weight, 2.0) - 1.0)
    heading = _HEADING_OF_SEVERAL_WORDS if hit.heading_words > 1 else _HEADING
    described = _DESCRIBED * min(hit.described, _MOST_DESCRIBED)
    return _KEYWORD * min(hit.weight, 1.0) + _SECOND_KEYWORD * second + heading * hit.heading + described


def _of_passage(passage: Overlap) -> float:
    if not passage.shared:
        return 0.0
    return (_PASSAGE_WITH_SEVERAL_WORDS if passage.shared > 1 else _PASSAGE) * passage.coverage


def _reason(hit: Hit, passage: Overlap) -> str:
    if hit.keywords:
        return f"keywords: {', '.join(hit.keywords[:3])}"
    if passage.shared:
        return "close to its documents"
    return "close to its description, questions and headings"
