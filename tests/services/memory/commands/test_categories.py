"""What goes when everything about a subject, or of a category, is to be forgotten."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from services.memory.commands.categories import all_of, asks_for_all
from services.memory.commands.holdings import CoreItem, Holdings
from services.memory.commands.pieces import Stored

_ENGLISH = [
    "My boss is called Ana.",
    "I work at a garden centre on Mill Lane.",
    "My mother grows dahlias.",
    "My brother lives in Leith, he drives a tram.",
    "My wife's job is in Dundee.",
    "The dentist says I grind my teeth.",
    "I swim on Tuesdays.",
    "I was sacked by Quayside Freight.",
]
_CHINESE = ["我妈在种大丽花。", "我弟弟住在泉州。", "我每周二游泳。", "我信佛。", "我在花卉市场上班。"]


def _all(words: str, texts: list[str]) -> list[str]:
    stored = [
        Stored("message", uuid4(), UUID(int=1), uuid4(), "user", text, datetime(2026, 11, 1, tzinfo=UTC))
        for text in texts
    ]
    return [place.text.strip() for place in all_of(words, Holdings(stored, []))]


@pytest.mark.parametrize(
    "message",
    [
        "Forget everything about my job.",
        "Please delete all my health information.",
        "I want nothing to do with the court case kept, remove it",
        "Everything to do with the lawsuit can go.",
        "把我家里人的事都忘掉",
        "凡是关于前公司的，一概不要了",
        "健康方面的信息请删除",
        "跟前公司有關的，全部清掉",
    ],
)
def test_a_request_for_all_of_a_subject_is_read_as_one(message: str) -> None:
    assert asks_for_all(message)


@pytest.mark.parametrize(
    "message", ["Forget what I said about Ana.", "Delete my address.", "刚才那句忘了吧", "我的地址删掉"]
)
def test_a_request_for_one_thing_is_none_for_all(message: str) -> None:
    assert not asks_for_all(message)


def test_a_category_takes_all_its_kinds_and_nothing_else() -> None:
    # That she, or a tram driver, works is no part of the user's own work; nor is a dentist.
    assert _all("my job", _ENGLISH) == [
        "My boss is called Ana.",
        "I work at a garden centre on Mill Lane.",
        "I was sacked by Quayside Freight.",
    ]
    assert _all("my family", _ENGLISH) == [
        "My mother grows dahlias.",
        "My brother lives in Leith,",
        "My wife's job is in Dundee.",
    ]
    assert _all("我家里人", _CHINESE) == ["我妈在种大丽花。", "我弟弟住在泉州。"]
    assert _all("宗教", _CHINESE) == ["我信佛。"]


def test_a_name_takes_what_has_it() -> None:
    assert _all("Quayside Freight", _ENGLISH) == ["I was sacked by Quayside Freight."]


@pytest.mark.parametrize("words", ["everything", "", "all of it", "所有的事"])
def test_words_that_name_nothing_take_nothing(words: str) -> None:
    assert _all(words, [*_ENGLISH, *_CHINESE]) == []


def test_an_item_of_core_memory_is_known_by_its_field() -> None:
    item = CoreItem("human", "occupation", "tram driver")
    assert [place.of for place in all_of("my job", Holdings([], [item]))] == [item]
