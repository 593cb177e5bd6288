"""Every row of the fault matrix."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults.__main__ import play, prepare
from tests.chaos.faults.rig import new_folder
from tests.chaos.faults.rows import ROWS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or os.geteuid() != 0,
        reason="signals, mounts and clocks need Linux and root",
    ),
]


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    with new_folder() as folder:
        yield asyncio.run(prepare(Path(folder)))


@pytest.mark.parametrize("name", ROWS)
async def test_nothing_is_lost_and_the_service_goes_on(name: str, template: Path) -> None:
    findings = await play(ROWS[name], template)
    assert findings.broken == []
