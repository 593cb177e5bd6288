"""Items of core memory: lists keep what they have."""

import pytest

from services.memory.items import merge_items

pytestmark = pytest.mark.untraced


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
