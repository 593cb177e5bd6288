"""Content of core memory: one item changes and nothing else is touched; patches are merged as RFC 7396 says."""

from typing import Any

import pytest

from services.errors import InvalidInput
from services.memory.core.items import apply_changes, canonical, merge_items, merge_patch
from state.memory import ItemChange


def _change(action: Any, field: str, value: Any = None, old: str | None = None) -> ItemChange:
    return ItemChange(action, "human", field, value, old)


@pytest.mark.parametrize(
    ("content", "change", "after"),
    [
({"allergies": ["nuts", "cats"]}, _change("remove", "allergies", old="nuts"), {"allergies": ["cats"]}),
({"allergies": ["青霉素", "芒果"]}, _change("remove", "allergies", old="芒果。"),
         {"allergies": ["青霉素"]}),
({"allergies": ["cats"]}, _change("add", "allergies", "CATS"), {"allergies": ["cats"]}),
({}, _change("add", "allergies", "cats"), {"allergies": ["cats"]}),
({"home": "lives in Bergen"}, _change("add", "home", "lives in Oslo"), {"home": "lives in Oslo"}),
({"car": "drives a Volvo"}, _change("add", "car", "drives a Tesla"),
         {"car": ["drives a Volvo", "drives a Tesla"]}),
({"home": "lives in Bergen"}, _change("replace", "home", "lives in Oslo", "Lives in Bergen."),
         {"home": "lives in Oslo"}),
({"home": "lives in Bergen", "name": "Ida"}, _change("remove", "home"), {"name": "Ida"}),
({"family": ["son: 7 years old", "daughter: 3 years old"]},
         _change("replace", "family", "son: 9 years old", "son: 7 years old"),
         {"family": ["son: 9 years old", "daughter: 3 years old"]}),
({"family": {"son": "7", "daughter": "3"}}, _change("replace", "family", "9", "son"),
         {"family": {"son": "9", "daughter": "3"}}),
({"family": {"son": "7", "daughter": "3"}}, _change("remove", "family", old="daughter"),
         {"family": {"son": "7"}}),
({"pets": [{"name": "豆豆", "kind": "狗"}, {"name": "咪咪", "kind": "猫"}]},
         _change("remove", "pets", old="豆豆 狗"), {"pets": [{"name": "咪咪", "kind": "猫"}]}),
({"preferences": ["tea", "coffee"]}, _change("replace", "preferences", "coffee", "tea"),
         {"preferences": ["coffee"]})
],
)  # fmt: skip
def test_one_item_changes_and_the_others_stay(
    content: dict[str, Any], change: ItemChange, after: dict[str, Any]
) -> None:
    applied = apply_changes(content, [change])
    assert applied.content == after
    assert applied.unmatched == []


@pytest.mark.parametrize(
    ("content", "change"),
    [
        ({"allergies": ["peanuts", "cats"]}, _change("remove", "allergies", old="dust")),
        ({"preferences": ["green tea", "black tea"]}, _change("remove", "preferences", old="tea")),
        ({"preferences": ["caterpillars"]}, _change("remove", "preferences", old="cat")),
        ({"allergies": ["cats"]}, _change("remove", "allergies")),
        ({}, _change("remove", "allergies", old="cats")),
        ({"preferences": ["no longer likes tea"]}, _change("remove", "preferences", old="likes tea")),
        ({"preferences": ["不再喜欢喝茶"]}, _change("remove", "preferences", old="喜欢喝茶")),
    ],
)
def test_what_names_no_item_is_reported_and_changes_nothing(content: dict[str, Any], change: ItemChange) -> None:
    applied = apply_changes(content, [change])
    assert applied.content == content
    assert applied.unmatched == [change]


@pytest.mark.parametrize(
    "change", [_change("add", "", "x"), _change("add", "home"), _change("replace", "home", "")]
)
def test_a_change_without_field_or_value_is_refused(change: ItemChange) -> None:
    with pytest.raises(InvalidInput):
        apply_changes({}, [change])


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
    ("old", "new"), [("likes tea", "no longer likes tea"), ("knows C++", "knows C#"), ("喜欢喝茶", "不喜欢喝茶")]
)
def test_nothing_goes_because_it_seems_to_be_contradicted(old: str, new: str) -> None:
    assert merge_items(["first", old], [new]) == ["first", old, new]


@pytest.mark.parametrize(
    ("old", "new"), [("likes tea", "Likes  TEA."), ("喜欢喝茶。", "喜欢 喝茶"), ("tea", "ｔｅａ")]
)
def test_what_is_written_otherwise_is_no_new_item(old: str, new: str) -> None:
    assert merge_items([old], [new]) == [old]
