"""Patches of core memory: RFC 7396 for objects; arrays keep what they have."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.items import canonical, merge_items, merge_patch

pytestmark = pytest.mark.untraced

# The table of RFC 7396, appendix A, but for the rows in which an array meets an array.
RFC_7396: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("old", "patch", "new"), RFC_7396)
def test_objects_are_merged_as_the_standard_says(old: Any, patch: Any, new: Any) -> None:
    assert canonical(merge_patch(old, patch)) == canonical(new)


def test_an_array_is_added_to_and_neither_side_is_changed() -> None:
    old, patch = {"a": [1, {"b": 2}]}, {"a": [{"b": 2}, True, 3]}
    assert canonical(merge_patch(old, patch)) == '{"a":[1,{"b":2},true,3]}'
    assert (old, patch) == ({"a": [1, {"b": 2}]}, {"a": [{"b": 2}, True, 3]})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("likes tea", "no longer likes tea"),
        ("lives in Berlin", "lives in Lisbon"),
        ("knows C++", "knows C#"),
        ("喜欢喝茶", "不喜欢喝茶"),
        ("size 3.5", "size 35"),
    ],
)
def test_nothing_goes_because_it_seems_to_be_contradicted(old: str, new: str) -> None:
    assert merge_items(["first", old], [new]) == ["first", old, new]


@pytest.mark.parametrize(
    ("old", "new"), [("likes tea", "Likes  TEA."), ("喜欢喝茶。", "喜欢 喝茶"), ("tea", "ｔｅａ")]
)
def test_what_is_written_otherwise_is_no_new_item(old: str, new: str) -> None:
    assert merge_items([old], [new]) == [old]


SENTENCES = st.sampled_from(
    ["likes tea", "Likes tea.", "lives in Lisbon", "养了猫", "养了狗", "", "。", "不", "了"]
)
ITEMS = st.lists(
    SENTENCES | st.integers(0, 2) | st.booleans() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 1))
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | SENTENCES,
    lambda inner: ITEMS | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_patch_applied_twice_does_what_it_did_once(old: Any, patch: Any) -> None:
    once = merge_patch(old, patch)
    assert canonical(merge_patch(once, patch)) == canonical(once)


@given(ITEMS, ITEMS)
def test_an_array_gets_no_duplicates_and_keeps_its_order(old: list[Any], patch: list[Any]) -> None:
    clean = merge_items([], old)
    merged = merge_items(clean, patch)
    texts = [canonical(item) for item in merged]
    assert len(set(texts)) == len(texts)
    there = [text for text in map(canonical, clean) if text in texts]
    assert there == [text for text in texts if text in there]
