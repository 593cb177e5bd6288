"""Decide which bases answer a message. Pure.

A keyword or a whole heading in a question decides by itself; else the base that is likely enough, by all that is
known (`likelihood`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.knowledge.base import BaseProfile
from services.knowledge.likelihood import Closeness, likelihood, observe
from services.knowledge.message_intent import MessageIntent
from services.knowledge.profile_match import Hit, Profiles

_KEYWORD = 0.5
_SECOND_KEYWORD = 0.25
_HEADING = 0.2
_HEADING_OF_SEVERAL_WORDS = 0.45
_DESCRIBED = 0.05
_MOST_DESCRIBED = 2.0
_SURE = 0.2
"""Points above those needed, and above the next base, with which keywords decide."""
_AGAINST_NONE = 0.75
"""How probable the likeliest base must be at least, as a share of the probability that none is wanted: documents
that are searched in vain cost less than documents that are not."""
_BESIDE = 0.15
"""The share of the likeliest base's probability with which another may contribute passages."""
_MOST_BESIDE = 2


@dataclass(frozen=True)
class Decision:
    """The base that fits best, and others that may have the answer as well."""

    profile: BaseProfile
    confidence: float
    reason: str
    also: tuple[BaseProfile, ...] = ()


def by_profile(profiles: Profiles, views: Sequence[str], manner: MessageIntent) -> Decision | None:
    """The base that a keyword, or all words of a heading, name without doubt; None to search the documents.

    Args:
        profiles: the bases.
        views: the message, and the clauses of it that ask (`manner.views_of`).
        manner: what the message wants.
    """
    points, reasons = _points(profiles, views)
    ordered = sorted(profiles.all, key=lambda profile: -points.get(profile.prefix, 0.0))
    if not ordered or not reasons.get(ordered[0].prefix):
        return None
    most = points[ordered[0].prefix]
    ahead = most - (points.get(ordered[1].prefix, 0.0) if len(ordered) > 1 else 0.0)
    if most < manner.needed + _SURE or ahead < _SURE:
        return None
    return Decision(ordered[0], round(min(0.99, 0.5 + most / 3), 2), reasons[ordered[0].prefix])


def by_closeness(
    profiles: Profiles, views: Sequence[str], manner: MessageIntent, closeness: Closeness
) -> Decision | None:
    """The bases that probably answer, by all evidence, or None. Arguments as for `by_profile`."""
    if not profiles.all or manner is MessageIntent.ELSEWHERE:
        return None
    probable = likelihood(observe(profiles, views, manner, closeness))
    order = (-probable).argsort(kind="stable").tolist()
    best, none = float(probable[order[0]]), 1.0 - float(probable.sum())
    if best < _AGAINST_NONE * none:
        return None
    also = [profiles.all[at] for at in order[1 : 1 + _MOST_BESIDE] if probable[at] >= _BESIDE * best]
    reason = f"most likely to have the answer (none of the bases: {none:.0%})"
    return Decision(profiles.all[order[0]], round(best, 2), reason, tuple(also))


def _points(profiles: Profiles, views: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    """Points of each base by prefix, for the part of the message that scores highest, and why they are certain."""
    points: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for view in views:
        for prefix, hit in profiles.compare(view).items():
            if (hit.keywords or hit.heading_words > 1) and (each := _of_profile(hit)) > points.get(prefix, 0.0):
                points[prefix], reasons[prefix] = each, _reason(hit)
    return points, reasons


def _reason(hit: Hit) -> str:
    if hit.keywords:
        return f"keywords: {', '.join(hit.keywords[:3])}"
    return "it has a heading with all these words" if hit.heading == 1.0 else ""


def _of_profile(hit: Hit) -> float:
    second = max(0.0, min(hit.weight, 2.0) - 1.0)
    heading = _HEADING_OF_SEVERAL_WORDS if hit.heading_words > 1 else _HEADING
    described = _DESCRIBED * min(hit.described, _MOST_DESCRIBED)
    return _KEYWORD * min(hit.weight, 1.0) + _SECOND_KEYWORD * second + heading * hit.heading + described
