"""Content of core memory: adds, replaces and removes single items, and merges patches.

A field of a section holds one value, a list of items, or a mapping of named values. Items are found by their text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.errors import InvalidInput
from services.text.language import folded
from state.memory import ItemChange


def merge_patch(old: Any, patch: Any) -> Any:
    """Return the value `old` with a patch applied; neither is changed.

    Objects are merged as RFC 7396 says: a key is set, null removes it, the others stay. An array in the patch is
    merged into an existing array. Applying a patch twice has the effect of applying it once.
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
    """Return a space's section laid over the one that all spaces share; neither is changed. For a field in both,
    items of lists are merged, objects are merged key by key, and any other value is the space's."""
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
    """Return the old items in their order, followed by the new ones; duplicates are dropped."""
    merged: dict[str, Any] = {}
    for item in (*old, *new):
        merged.setdefault(identity(item), item)
    return list(merged.values())


def identity(item: Any) -> str:
    """Return a text that is equal for items that say the same."""
    folded_text = folded(item) if isinstance(item, str) else ""
    return f"text {folded_text}" if folded_text else canonical(item)


def canonical(value: Any) -> str:
    """Return a value as a text that is equal for equal values only; to Python, `True` equals 1."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


SINGLE_FIELDS = frozenset(
    [
        *("name", "preferred_name", "pronouns", "gender", "age", "birthday", "home", "address", "hometown"),
        *("nationality", "work", "job", "employer", "studies", "school", "height", "weight", "shoe_size"),
        *("clothing_size", "blood_type", "timezone", "email", "phone_number", "current_intent", "marital_status"),
    ]
)
"""Fields that hold one value at a time: adding to one replaces what it held."""
LIST_FIELDS = frozenset(
    [
        *("preferences", "allergies", "health", "diet", "family", "people", "pets", "plans", "dates", "wishes"),
        *("possessions", "languages", "habits", "hobbies", "skills", "facts"),
    ]
)
"""Fields that are lists from their first item on. Any other field becomes a list with its second value."""


@dataclass(frozen=True)
class AppliedChanges:
    """The content after changes, and the changes that found nothing to change."""

    content: dict[str, Any]
    unmatched: list[ItemChange] = field(default_factory=list)
    """Changes whose `old` matched no item, and which therefore changed nothing."""


def apply_changes(content: Mapping[str, Any], changes: Sequence[ItemChange]) -> AppliedChanges:
    """Apply changes to a section's content in order; `content` is not modified.

    `old` matches an item with the same text; case, width, spaces and punctuation do not matter. A field whose last
    item is removed is removed too. The section that a change names is ignored.

    Raises:
        InvalidInput: A change lacks its field or its value.
    """
    new = dict(content)
    unmatched = []
    for change in changes:
        _check(change)
        if not _apply(new, change):
            unmatched.append(change)
    return AppliedChanges(new, unmatched)


def _find(value: Any, old: str) -> str | int | None:
    """Return the index (in a list) or the key (in a mapping) of the item with a text; "" for a single value, None
    if no item has the text."""
    wanted = folded(old)
    return next((place for place, texts in _entries(value) if wanted and wanted in texts), None)


def item_text(item: Any) -> str:
    """Return an item as text: a text unchanged, a mapping as its values."""
    if isinstance(item, str):
        return item
    if isinstance(item, Mapping):
        return " ".join(item_text(value) for value in item.values())
    if isinstance(item, list):
        return " ".join(item_text(value) for value in item)
    return canonical(item)


def values_of(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each value of a section with its field; a nested value has the path of its names."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            for inner, text in values_of(value):
                yield f"{name}.{inner}", text
        else:
            for item in value if isinstance(value, list) else [value]:
                if item not in (None, ""):
                    yield name, item_text(item)


def removed_value(section: str, field: str, text: str) -> ItemChange:
    """Return the change that removes a value; for a nested value, the change that removes the entry with its
    name."""
    name, _, inner = field.partition(".")
    old = inner.partition(".")[0] or text
    return ItemChange("remove", section, name, old=old)


def _check(change: ItemChange) -> None:
    if not change.field:
        raise InvalidInput("field", "names the field that is changed")
    if change.action != "remove" and change.value in (None, "", [], {}):
        raise InvalidInput("value", f"is the new item; {change.action} needs one")


def _apply(content: dict[str, Any], change: ItemChange) -> bool:
    if change.action == "add":
        content[change.field] = _added(content.get(change.field), change)
        return True
    if change.field not in content:
        return change.action == "replace" and change.old is None and _set(content, change)
    there = content[change.field]
    if change.old is None:
        return not isinstance(there, (list, dict)) and _set(content, change)
    place = _find(there, change.old)
    if place is None:
        return False
    if not isinstance(there, (list, dict)):
        return _set(content, change)
    content[change.field] = _changed(there, place, change)
    if not content[change.field]:
        del content[change.field]
    return True


def _set(content: dict[str, Any], change: ItemChange) -> bool:
    if change.action == "remove":
        del content[change.field]
    else:
        is_item = change.field in LIST_FIELDS and not isinstance(change.value, list)
        content[change.field] = [change.value] if is_item else change.value
    return True


def _added(there: Any, change: ItemChange) -> Any:
    name, value = change.field, change.value
    if isinstance(there, dict) and isinstance(value, Mapping):
        return {**there, **value}
    new = value if isinstance(value, list) else [value]
    if isinstance(there, dict):
        there = [there]
    if not isinstance(there, list):
        if there is None or name in SINGLE_FIELDS:
            return list(new) if name in LIST_FIELDS else value
        there = [there]
    items = list(there)
    for item in new:
        if not any(_same(item, other) for other in items):
            items.append(item)
    return items[0] if len(items) == 1 and name not in LIST_FIELDS and there != items else items


def _changed(
    there: list[Any] | dict[str, Any], place: str | int, change: ItemChange
) -> list[Any] | dict[str, Any]:
    if isinstance(there, dict):
        kept = dict(there)
        if change.action == "remove":
            del kept[str(place)]
        else:
            kept[str(place)] = change.value
        return kept
    assert isinstance(place, int)  # noqa: S101 — items of a list are found by their index
    old = there[place]
    if change.action == "remove":
        return [item for item in there if not _same(item, old)]
    if any(_same(item, change.value) for index, item in enumerate(there) if index != place):
        return [item for index, item in enumerate(there) if index != place]
    return [*there[:place], change.value, *there[place + 1 :]]


def _entries(value: Any) -> list[tuple[str | int, list[str]]]:
    """Yield each item with the texts by which it can be named."""
    if isinstance(value, list):
        return [(index, [folded(item_text(item))]) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return [
            (key, [folded(key), folded(item_text(inner)), folded(f"{key}: {item_text(inner)}")])
            for key, inner in value.items()
        ]
    return [("", [folded(item_text(value))])]


def _same(one: Any, other: Any) -> bool:
    return identity(one) == identity(other)
