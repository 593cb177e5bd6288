"""JSON merge patch (RFC 7396) for core memory, but for arrays: what is new is added, what it contradicts goes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.text.contradictions import Claim, claim_of


def merge_patch(old: Any, patch: Any) -> Any:
    """The value `old` with a patch applied; neither is changed.

    Objects as RFC 7396 says: a key is set, null removes it, the others stay. An array of the patch is merged
    into an array that is there. Applied twice, a patch does what it did once.
    """
    if isinstance(patch, list):
        return merge_items(old if isinstance(old, list) else [], patch)
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def overlay(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A section of a space over the one that all spaces share; neither is changed.

    Of a field that both have, items of lists are merged, objects key by key, and any other value is the space's.
    """
    merged = dict(shared)
    for key, value in own.items():
        there = merged.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            merged[key] = overlay(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            merged[key] = merge_items(there, value)
        else:
            merged[key] = value
    return merged


def merge_items(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """The old items in their order, the new ones behind them, each once.

    A new item that contradicts old ones stands in the place of the first of them; of new ones that contradict
    each other, the last one holds.
    """
    merged = [_Item.of(value) for value in old]
    for item in _that_hold([_Item.of(value) for value in new]):
        replaced = [place for place, there in enumerate(merged) if item.contradicts(there)]
        if any(item.is_same(there) for there in merged):
            merged = [there for place, there in enumerate(merged) if place not in replaced]
        elif replaced:
            merged[replaced[0]] = item
            merged = [there for place, there in enumerate(merged) if place not in replaced[1:]]
        else:
            merged.append(item)
    return [item.value for item in merged]


@dataclass(frozen=True)
class _Item:
    value: Any
    identity: str
    claim: Claim | None

    @classmethod
    def of(cls, value: Any) -> "_Item":
        claim = claim_of(value) if isinstance(value, str) else None
        return cls(value, f"text {claim.text}" if claim else canonical(value), claim)

    def is_same(self, other: "_Item") -> bool:
        return self.identity == other.identity

    def contradicts(self, other: "_Item") -> bool:
        return self.claim is not None and other.claim is not None and self.claim.contradicts(other.claim)


def _that_hold(new: Sequence[_Item]) -> list[_Item]:
    kept: list[_Item] = []
    for item in reversed(new):
        if not any(item.is_same(later) or item.contradicts(later) for later in kept):
            kept.insert(0, item)
    return kept


def canonical(value: Any) -> str:
    """A value as the same text whenever it is the same: to Python, `True` equals 1."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
