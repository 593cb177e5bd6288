"""What was found in texts is kept until it is dropped, and then held by nothing."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from services.text.caches import Found, drop_texts, text_cache


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
