"""Single items of core memory: one changes, and nothing else is touched."""

from typing import Any

import pytest

from services.errors import InvalidInput
from services.memory.items import apply_changes
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
