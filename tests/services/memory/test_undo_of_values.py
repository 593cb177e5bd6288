"""Undoing a change of core memory either takes back exactly what it did, or is refused; nothing later is lost."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.memory.core.items import apply_changes
from services.memory.core.provenance import taken_back
from state.memory import ItemChange

FIELDS = ("home", "facts", "other")
TEXTS = ("tea", "tea with milk", "green tea", "coffee")

_CHANGES = st.builds(
    lambda action, field, value, old: ItemChange(action, "human", field, value=value, old=old),
    st.sampled_from(["add", "replace", "remove"]),
    st.sampled_from(FIELDS),
    st.sampled_from(TEXTS),
    st.sampled_from(TEXTS),
)


def _items(content: dict[str, Any], field: str) -> set[str]:
    value = content.get(field, [])
    return set(value) if isinstance(value, list) else {value}


@given(st.lists(_CHANGES, min_size=1, max_size=8), st.integers(0, 7))
def test_an_undone_change_loses_nothing_that_came_later(changes: list[ItemChange], undone: int) -> None:
    contents: list[dict[str, Any]] = [{}]
    for change in changes:
        contents.append(apply_changes(contents[-1], [change]).content)
    undone = min(undone, len(changes) - 1)
    old, new, now = contents[undone], contents[undone + 1], contents[-1]
    left, is_whole = taken_back(now, old, new)
    if not is_whole:
        assert undone < len(changes) - 1, "the last change can always be undone"
        return
    for field in FIELDS:
        brought = _items(new, field) - _items(old, field)
        taken = _items(old, field) - _items(new, field)
        assert _items(left, field) == (_items(now, field) - brought) | taken
