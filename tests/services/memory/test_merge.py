"""Patches of core memory: RFC 7396 for objects; arrays keep what they have, unless it is contradicted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.merge import canonical, merge_items, merge_patch
from services.text.contradictions import claim_of

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


CONTRADICT = [
    ("喜欢恐怖片", "不喜欢恐怖片"),
    ("喜欢 恐怖片。", "现在讨厌恐怖片"),
    ("非常喜欢喝茶", "不再喜欢喝茶了"),
    ("爱吃辣", "不吃辣了"),
    ("对足球感兴趣", "对足球不感兴趣"),
    ("likes horror films", "no longer likes horror films"),
    ("Likes horror films.", "dislikes horror films"),
    ("The user really loves horror films", "I can't stand horror films"),
    ("eats meat", "does not eat meat anymore"),
    ("drinks coffee", "has stopped drinking coffee"),
    ("is allergic to nuts", "isn’t allergic to nuts"),
    ("spicy food", "dislikes spicy food"),
    ("ＬＩＫＥＳ tea", "hates tea"),
    ("lives in Berlin", "lives in Lisbon"),
    ("I live in Berlin", "The user has moved to Lisbon"),
    ("lives in Berlin", "no longer lives in Berlin"),
    ("works at Google", "now works for Meta"),
    ("is called Anna", "is called Eva"),
    ("her dog is called Rex", "her dog is called Max"),
    ("is 30 years old", "is 31 years old"),
    ("住在北京", "现在住在上海"),
    ("住在北京", "搬到上海"),
    ("住在北京", "不住在北京了"),
    ("用户叫小王", "叫小李"),
    ("在谷歌工作", "在微软上班"),
    ("我家狗叫旺财", "我家狗叫来福"),
]
DO_NOT = [
    ("养了猫", "养了狗"),
    ("has a cat", "has a dog"),
    ("likes tea", "likes coffee"),
    ("喜欢喝茶", "喜欢喝咖啡"),
    ("likes Berlin", "lives in Berlin"),
    ("lives in Lisbon", "no longer lives in Berlin"),
    ("住在上海", "不住在北京了"),
    ("her parents live in Berlin", "lives in Lisbon"),
    ("dog is called Rex", "cat is called Mia"),
    ("狗叫旺财", "猫叫咪咪"),
    ("女儿5岁", "儿子3岁"),
    ("works at Google", "works as a nurse"),
    ("likes tea", "Likes  TEA."),
    ("likes", "dislikes"),
    ("likes " + "a" * 300, "dislikes " + "a" * 300),
]


@pytest.mark.parametrize(("old", "new"), CONTRADICT)
def test_of_two_that_contradict_each_other_the_newer_holds_in_the_place_of_the_older(old: str, new: str) -> None:
    assert merge_items(["first", old, "last"], [new]) == ["first", new, "last"]
    assert merge_items([new], [old]) == [old]


@pytest.mark.parametrize(("one", "other"), DO_NOT)
def test_what_only_looks_alike_is_no_contradiction(one: str, other: str) -> None:
    assert not claim_of(one).contradicts(claim_of(other))
    assert not claim_of(other).contradicts(claim_of(one))


def test_in_one_patch_the_last_word_counts() -> None:
    assert merge_items(["likes tea"], ["hates tea", "likes coffee", "loves tea"]) == ["loves tea", "likes coffee"]


def test_one_item_may_take_the_place_of_several() -> None:
    old = ["lives in Lisbon", "no longer lives in Berlin", "likes tea"]
    assert merge_items(old, ["lives in Berlin"]) == ["lives in Berlin", "likes tea"]


SENTENCES = st.sampled_from(
    [*(sentence for pair in CONTRADICT + DO_NOT for sentence in pair), "", "。", "不", "了"]
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
    claims = [claim_of(item) for item in merged if isinstance(item, str)]
    assert not any(one.contradicts(other) for one in claims for other in claims)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_about_something_and_contradiction_is_mutual(one: str, other: str) -> None:
    a, b = claim_of(one), claim_of(other)
    assert a.contradicts(b) == b.contradicts(a)
    assert not a.contradicts(a)
