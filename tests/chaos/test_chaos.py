"""The short form of `make chaos`."""

import shutil

import pytest

from tests.chaos.run import run

pytestmark = [pytest.mark.slow, pytest.mark.soak]


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server on this machine")
async def test_under_random_failures_every_promise_is_kept() -> None:
    report = await run(60, at_once=12, seed=7)
    assert report.broken == []
    assert report.figures["messages stored exactly once"] == 60
    assert report.figures["connections broken"] > 10  # type: ignore[operator]
    assert sum(count for name, count in report.figures.items() if name.startswith("milvus ")) > 0  # type: ignore[misc]
    assert report.figures["units in the index"] > 60  # type: ignore[operator]
