"""Core memory as it would be without some of its changes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.memory.core.provenance import Version, without


def _history(*contents: dict[str, Any]) -> list[Version]:
    before: list[dict[str, Any] | None] = [None, *contents[:-1]]
    return [Version(number, old, new) for number, (old, new) in enumerate(zip(before, contents, strict=True), 1)]


def _left(dropped: set[int], *contents: dict[str, Any]) -> Any:
    kept = without(_history(*contents), dropped)
    return kept[-1].new if kept else None


def test_a_list_loses_only_the_item_that_a_dropped_change_added() -> None:
    before, after = {"allergies": ["peanuts"]}, {"allergies": ["peanuts", "cats"]}
    both = {"allergies": ["peanuts", "cats", "dust"]}
    assert _left({2}, before, after, both) == {"allergies": ["peanuts", "dust"]}
    assert _left({1}, before, after, both) == {"allergies": ["cats", "dust"]}


def test_a_value_that_a_dropped_change_replaced_holds_again() -> None:
    assert _left({2}, {"home": "Berlin"}, {"home": "Lisbon"}) == {"home": "Berlin"}


def test_a_value_that_became_a_list_is_one_of_its_items() -> None:
    assert _left({1}, {"pets": "cat"}, {"pets": ["cat", "dog"]}) == {"pets": ["dog"]}
    assert _left({2}, {"pets": "cat"}, {"pets": ["cat", "dog"]}, {"pets": "cat"}) == {"pets": "cat"}
    assert _left({1}, {"pets": ["cat"]}, {"pets": "dog"}) == {"pets": "dog"}


_CONTENT = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(st.integers(0, 3), st.lists(st.integers(0, 4), unique=True, max_size=4)),
    max_size=4,
)


@given(st.lists(_CONTENT, min_size=2, max_size=5), st.data())
def test_a_dropped_item_appears_nowhere_in_what_is_kept(
    contents: list[dict[str, Any]], data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, len(contents)))
    marked = [dict(content) for content in contents]
    for content in marked[number - 1 :]:
        content["x"] = ["secret"]
    assert "secret" not in str(without(_history(*marked), {number}))
