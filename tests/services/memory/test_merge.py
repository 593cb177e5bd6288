"""Patches of core memory: RFC 7396 for objects; arrays keep what they have."""

from typing import Any

import pytest

from services.memory.items import canonical, merge_items, merge_patch

pytestmark = pytest.mark.untraced

# The table of RFC 7396, appendix A, but for the rows in which an array meets an array.
RFC_7396: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": "foo"}, None, None),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("old", "patch", "new"), RFC_7396)
def test_objects_are_merged_as_the_standard_says(old: Any, patch: Any, new: Any) -> None:
    assert canonical(merge_patch(old, patch)) == canonical(new)


@pytest.mark.parametrize(
    ("old", "new"),
    [("likes tea", "no longer likes tea"), ("knows C++", "knows C#"), ("喜欢喝茶", "不喜欢喝茶")],
)
def test_nothing_goes_because_it_seems_to_be_contradicted(old: str, new: str) -> None:
    assert merge_items(["first", old], [new]) == ["first", old, new]


@pytest.mark.parametrize(
    ("old", "new"), [("likes tea", "Likes  TEA."), ("喜欢喝茶。", "喜欢 喝茶"), ("tea", "ｔｅａ")]
)
def test_what_is_written_otherwise_is_no_new_item(old: str, new: str) -> None:
    assert merge_items([old], [new]) == [old]
