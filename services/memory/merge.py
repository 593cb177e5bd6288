"""JSON merge patch (RFC 7396) for core memory, but for arrays: what is new is added."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from services.text.compare import folded


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
    """The old items in their order, the new ones behind them, each once."""
    merged: dict[str, Any] = {}
    for item in (*old, *new):
        merged.setdefault(identity(item), item)
    return list(merged.values())


def identity(item: Any) -> str:
    """A text that is the same for items that say the same."""
    folded_text = folded(item) if isinstance(item, str) else ""
    return f"text {folded_text}" if folded_text else canonical(item)


def canonical(value: Any) -> str:
    """A value as the same text whenever it is the same: to Python, `True` equals 1."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
