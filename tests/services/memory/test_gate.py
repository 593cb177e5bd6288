"""What an exchange says that may be worth remembering; ordinary talk says nothing of the kind."""

import time

import pytest

from services.memory.gate import what_fires
from tests.services.memory import said

_ENGLISH = (*said.ENGLISH, *said.MORE_ENGLISH, *said.THIRD_ENGLISH, *said.HARD_ENGLISH)
_CHINESE = (*said.CHINESE, *said.MORE_CHINESE, *said.THIRD_CHINESE, *said.HARD_CHINESE)
_BOTH = [pytest.param(_ENGLISH, id="English"), pytest.param(_CHINESE, id="Chinese")]


@pytest.mark.parametrize("sentences", _BOTH)
def test_it_fires_for_what_is_worth_remembering_and_for_little_else(
    sentences: tuple[tuple[str, str], ...],
) -> None:
    fired = {text: bool(what_fires(text, "")) for text, _ in sentences}
    wanted = {text: bool(signal) for text, signal in sentences}
    right = sum(fired[text] and wanted[text] for text in wanted)
    assert len(sentences) >= 60
    assert 0.4 <= sum(wanted.values()) / len(wanted) <= 0.6
    assert right / sum(fired.values()) >= 0.95
    assert right / sum(wanted.values()) >= 0.95


@pytest.mark.parametrize("sentences", _BOTH)
def test_it_mostly_knows_what_it_is(sentences: tuple[tuple[str, str], ...]) -> None:
    signals = [signal in what_fires(text, "") for text, signal in sentences if signal]
    assert sum(signals) / len(signals) >= 0.9


@pytest.mark.parametrize(
    ("answer", "fires"),
    [
        ("I've booked the table for eight.", ("outcome",)),
        ("Your order has been placed.", ("outcome",)),
        ("已为您预订明晚七点的位子。", ("outcome",)),
        ("I like comedies too, and you live in Lisbon.", ()),
        ("你喜欢喜剧，住在里斯本。", ()),
    ],
)
def test_of_the_answer_only_what_came_of_it_counts(answer: str, fires: tuple[str, ...]) -> None:
    assert what_fires("Yes, please.", answer) == fires


@pytest.mark.parametrize(
    "message",
    [
        "",
        "   ",
        "\x00",
        "i usually " * 300,
        "我不再" * 1000,
        "我还是" * 1000,
        "“" * 2000,
        "my really " * 400,
        "a" * 10**6,
    ],
)
def test_no_message_makes_it_slow(message: str) -> None:
    begun = time.process_time()
    what_fires(message, message)
    assert time.process_time() - begun < 2  # not exponential
