"""What was found in texts is kept until it is dropped, and then held by nothing."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from services.text.caches import drop_texts, text_cache


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
