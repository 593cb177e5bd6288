"""Which piece of memory is meant by a command that names it in other words."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from services.memory.commands.holdings import CoreItem, Holdings
from services.memory.commands.pieces import Stored
from services.memory.commands.targets import sought_by
from state.memory import Command

_TOLD = [
    "I make 74k a year at the dockyard.",
    "My ex-husband is called Graham.",
    "I'm on 30 mg of citalopram since August.",
    "My son got suspended for vaping.",
    "I can't eat shellfish.",
    "The choir meets on Fridays.",
]
_TOLD_IN_CHINESE = ["我月薪税后一万七千五。", "我最近在吃舍曲林。", "我对芒果过敏。", "周末去合唱团。"]


def _holdings(told: list[str], *items: CoreItem) -> Holdings:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    stored = [Stored("message", uuid4(), UUID(int=1), uuid4(), "user", text, at) for text in told]
    return Holdings(stored, items)


def _likeliest(words: str, message: str, holdings: Holdings) -> tuple[float, str]:
    command = Command("forget", "stated", target=words, named=words, about=words)
    share, place = holdings.likely(sought_by(command, message))[0]
    return share, place.text


@pytest.mark.parametrize(
    ("words", "meant"),
    [("how much I earn", 0), ("my ex", 1), ("my medication", 2), ("the suspension", 3), ("the seafood thing", 4)],
)
def test_what_is_named_in_other_words_is_found(words: str, meant: int) -> None:
    share, text = _likeliest(words, f"Forget {words}.", _holdings(_TOLD))
    assert text == _TOLD[meant]
    assert share > 0.3


@pytest.mark.parametrize(("words", "meant"), [("工资", 0), ("芒果", 2)])
def test_chinese_is_found_by_its_concepts_too(words: str, meant: int) -> None:
    _, text = _likeliest(words, f"忘掉{words}的事", _holdings(_TOLD_IN_CHINESE))
    assert text == _TOLD_IN_CHINESE[meant]


@pytest.mark.parametrize("words", ["my yacht", "游艇"])
def test_nothing_is_likely_where_nothing_comes_near(words: str) -> None:
    share, _ = _likeliest(words, f"Forget {words}.", _holdings([*_TOLD, *_TOLD_IN_CHINESE]))
    assert share < 0.3


def test_what_was_said_twice_is_as_likely_as_what_was_said_once() -> None:
    once, _ = _likeliest("my medication", "Forget my medication.", _holdings(_TOLD))
    twice, _ = _likeliest("my medication", "Forget my medication.", _holdings([*_TOLD, _TOLD[2]]))
    assert twice > once / 2


def test_an_item_of_core_memory_is_found_by_its_field() -> None:
    item = CoreItem("human", "allergies", "walnuts")
    _, text = _likeliest("my allergy", "Forget my allergy.", _holdings(["The choir meets on Fridays."], item))
    assert text.endswith("walnuts")


def test_nothing_is_meant_where_nothing_is_held() -> None:
    assert _holdings([]).likely(sought_by(Command("forget", "stated", target="my ex"), "Forget my ex.")) == []


def test_an_item_without_other_words_says_what_its_message_says() -> None:
    at_home, of_taste = (
        CoreItem("human", field, text) for field, text in (("home", "lives in Berlin"), ("likes", "rye bread"))
    )
    said, home, taste = (
        _holdings(["I live in Berlin."], at_home, of_taste).places[2],
        *_holdings([], at_home, of_taste).places,
    )
    assert said.says_the_same(home)
    assert home.says_the_same(said)
    assert not said.says_the_same(taste)
    assert not home.says_the_same(taste)
