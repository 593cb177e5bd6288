"""Two API processes behind nginx are restarted and upgraded under load, and no client notices."""

import shutil

import pytest

from tests.chaos.rolling import restart_under_load, upgrade_under_load

pytestmark = [
    pytest.mark.process,
    pytest.mark.soak,
    pytest.mark.skipif(
        shutil.which("nginx") is None or shutil.which("redis-server") is None,
        reason="no nginx or redis-server on this machine; install the system's packages",
    ),
]


async def test_a_rolling_restart_fails_no_turn() -> None:
    figures = await restart_under_load(1, 12)
    assert figures.failed == []
    assert figures.completed > 24


async def test_this_version_and_the_next_run_on_one_database_and_fail_no_turn() -> None:
    figures = await upgrade_under_load(12)
    assert figures.failed == []
    assert figures.restarts == 7
