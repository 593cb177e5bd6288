"""What was found in texts is kept until it is dropped, and then held by nothing."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from services.text.caches import Found, drop_texts, text_cache
from services.text.language import language_of
from services.text.tokenizer import terms


class _Found:
    """What was found; a plain text knows no weak references."""


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    yield
    drop_texts()


def test_a_result_is_kept_until_texts_are_dropped() -> None:
    asked = []

    @text_cache(2)
    def find(text: str) -> _Found:
        asked.append(text)
        return _Found()

    found = weakref.ref(find("asthma"))
    assert find("asthma") is found()
    assert asked == ["asthma"]
    drop_texts()
    gc.collect()
    assert found() is None
    find("asthma")
    assert asked == ["asthma", "asthma"]


def test_what_was_dropped_is_found_as_before() -> None:
    text = "我的狗叫 Waffle, and it barks"
    before = terms(text), language_of([text])
    drop_texts()
    assert (terms(text), language_of([text])) == before


def test_texts_that_are_not_kept_are_looked_through_together() -> None:
    asked: list[list[str]] = []

    def lengths(texts: list[str]) -> list[int]:
        asked.append(texts)
        return [len(text) for text in texts]

    found = Found(2, lengths)
    assert found.of(["tea", "coffee", "tea"]) == [3, 6, 3]
    assert found.of(["water", "coffee"]) == [5, 6]
    assert found.of(["tea"]) == [3], "only two are kept"
    assert asked == [["tea", "coffee"], ["water"], ["tea"]]
    drop_texts()
    assert found.of(["tea", "tea"]) == [3, 3]
    assert asked[-1] == ["tea"]


def test_what_is_not_to_be_kept_takes_no_room_and_uses_what_is_kept() -> None:
    asked: list[list[str]] = []

    def lengths(texts: list[str]) -> list[int]:
        asked.append(texts)
        return [len(text) for text in texts]

    found = Found(2, lengths)
    assert found.of(["tea", "coffee"]) == [3, 6]
    assert found.of(["water", "tea", "milk"], keep=False) == [5, 3, 4]
    assert found.of(["coffee", "tea"]) == [6, 3]
    assert found.of(["water"], keep=False) == [5]
    assert asked == [["tea", "coffee"], ["water", "milk"], ["water"]]
