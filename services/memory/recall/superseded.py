"""Finds units that no longer hold: the user has since said otherwise, or core memory contradicts them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from services.memory.episodes.episode import StoredUnit
from services.text.caches import text_cache
from services.text.contradictions import Claim, claim_of
from services.text.language import language_of
from services.text.questions import asks

_SENTENCE = re.compile(r"[^.!?。！？;；,，\n]+[?？]?")
_MOST_CHARACTERS = 2_000
_MOST_SENTENCES = 12
_SHORT = 500
_SHORTEST_SUBJECT = 2
"""Minimum characters of a value: what is left of 好了 or 太早 has no subject."""


@dataclass(frozen=True)
class Superseded:
    """Why a unit no longer holds."""

    by: str | None
    """Id of the unit that replaces it; None = core memory does."""

    @property
    def reason(self) -> str:
        """The reason in words, for the report."""
        return f"superseded by {self.by or 'core memory'}"


def superseded(units: Sequence[StoredUnit], core_memory: Mapping[str, Mapping[str, Any]]) -> dict[str, Superseded]:
    """Return the units that no longer hold, each with the reason.

    A statement of the user, or a written memory, is superseded by a newer unit or a text of core memory that
    contradicts it, together with the rest of its turn. Earlier values that only the history of core memory holds
    are not considered.
    """
    known = [claim for text in _texts(core_memory) for claim in _claims(text)]
    own = [unit for unit in units if unit.role == "user"]
    claims = {unit.unit_id: _said(unit) for unit in own}
    gone: dict[UUID, Superseded] = {}
    for unit in own:
        newer = [
            other
            for other in own
            if other.created_at > unit.created_at and _contradict(claims[other.unit_id], claims[unit.unit_id])
        ]
        if newer:
            gone[unit.episode_id] = Superseded(str(max(newer, key=lambda other: other.created_at).unit_id))
        elif _contradict(known, claims[unit.unit_id]):
            gone[unit.episode_id] = Superseded(None)
    return {str(unit.unit_id): gone[unit.episode_id] for unit in units if unit.episode_id in gone}


def contradicted(older: str, newer: Iterable[str]) -> bool:
    """Whether a new statement contradicts a memory; a bare value (tea) states nothing."""
    stated = [claim for text in newer for claim in _claims(text) if claim.tells]
    return _contradict(stated, _claims(older))


def _contradict(newer: Sequence[Claim], older: Sequence[Claim]) -> bool:
    repeated = {claim.text for claim in newer}
    return any(claim.contradicts(before) for claim in newer for before in older if before.text not in repeated)


def _claims(text: str) -> Sequence[Claim]:
    return (_remembered_claims if len(text) <= _SHORT else _claims_of)(text)


def _claims_of(text: str) -> Sequence[Claim]:
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text[:_MOST_CHARACTERS])[:_MOST_SENTENCES]]
    # A question claims nothing: "what is my dog called?" gives no other name.
    return [
        claim_of(sentence) for sentence in sentences if sentence and not asks(sentence, language_of([sentence]))
    ]


# Messages on one subject recall the same units.
_remembered_claims = text_cache(512)(_claims_of)


def _said(unit: StoredUnit) -> Sequence[Claim]:
    """Return its claims; for a message, only those that name their subject."""
    claims = _claims(unit.text)
    if unit.message_id is None:
        return claims
    return [claim for claim in claims if claim.owned and len(claim.subject) >= _SHORTEST_SUBJECT]


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
