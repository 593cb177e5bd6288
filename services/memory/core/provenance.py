"""Core memory as it would be without some of its changes. Pure functions.

A section's history holds its whole content before and after each change. Here each change is read as a difference,
item by item in lists and key by key in objects, and the differences that stay are applied one after the other.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.memory.core.items import canonical

_MISSING: Any = object()


@dataclass(frozen=True)
class Version:
    """One change of a section."""

    number: int
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


def without(history: Sequence[Version], dropped: Collection[int]) -> list[Version]:
    """Return the history, oldest first, as if the changes numbered in `dropped` had not been made.

    A change that was made between two entries without being recorded counts as one that stays. The `new` of the
    last entry is the remaining content, empty if nothing remains.
    """
    content: dict[str, Any] = {}
    before: Mapping[str, Any] = {}
    kept = []
    for version in history:
        old, new = version.old or {}, version.new or {}
        content = apply_difference(content, before, old)
        before = new
        if version.number in dropped:
            continue
        changed = apply_difference(content, old, new)
        kept.append(Version(version.number, content, changed))
        content = changed
    return kept


def apply_difference(content: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` after applying exactly the difference between `old` and `new`."""
    changed = dict(content)
    for key in {**old, **new}:
        value = _changed(changed.get(key, _MISSING), old.get(key, _MISSING), new.get(key, _MISSING))
        if value is _MISSING:
            changed.pop(key, None)
        else:
            changed[key] = value
    return changed


def taken_back(
    content: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return `content` without the change from `old` to `new`, and whether this undid all of the change and
    nothing later.

    If a field was changed again later, only items of lists are taken back.
    """
    left, is_whole = dict(content), True
    for key in sorted(old.keys() | new.keys()):
        before, after = ({key: each[key]} if key in each else {} for each in (old, new))
        back = apply_difference(left, after, before)
        is_same = _sorted(apply_difference(back, before, after)) == _sorted(left)
        is_whole = is_whole and is_same
        if is_same or isinstance(left.get(key), list):
            left = back
    return left, is_whole


def _sorted(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a content with its lists sorted, for comparison."""
    return {key: sorted(map(canonical, each)) if isinstance(each, list) else each for key, each in content.items()}


def _changed(value: Any, old: Any, new: Any) -> Any:
    if new is old or new == old:
        return value
    if new is _MISSING:
        return _MISSING
    if isinstance(new, dict) and (old is _MISSING or isinstance(old, dict)):
        inside = apply_difference(value if isinstance(value, dict) else {}, {} if old is _MISSING else old, new)
        return _MISSING if not inside and value is _MISSING and new else inside
    if isinstance(new, list) or isinstance(old, list):  # a field becomes a list with its second value
        before, after = _items(old), _items(new)
        stays = [item for item in _items(value) if item in after or item not in before]
        items = stays + [item for item in after if item not in before and item not in stays]
        if not items and value is _MISSING and before:
            return _MISSING
        return items if isinstance(new, list) or len(items) > 1 else (items or [_MISSING])[0]
    return new


def _items(value: Any) -> list[Any]:
    if value is _MISSING:
        return []
    return value if isinstance(value, list) else [value]
