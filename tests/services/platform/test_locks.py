"""Locks across processes, and what ends a process that hangs."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.errors import ConfigurationError
from services.platform.migrate import check_version
from services.platform.postgres import Database

_HANGS = """
import asyncio, sys, time
from services.platform.watchdog import ended_when_it_hangs

async def work():
    async with ended_when_it_hangs(1.0):
        await asyncio.sleep(1.5)
        print("lives", flush=True)
        time.sleep(60)

asyncio.run(work())
"""


@pytest.mark.anyio
async def test_parts_are_held_beside_each_other_and_the_whole_only_without_them(database: Database) -> None:
    async with AsyncExitStack() as parts:
        held = [await parts.enter_async_context(database.only_one(f"w {n}", part_of="w")) for n in (1, 2)]
        assert held == [True, True]
        async with database.only_one("w 1", part_of="w") as again, database.only_one("w") as whole:
            assert (again, whole) == (False, False)

        async def take_whole() -> bool:
            async with database.only_one("w", wait=True) as alone:
                async with database.only_one("w 3", part_of="w") as part:
                    assert not part
                return alone

        waiting = asyncio.create_task(take_whole())
        async with asyncio.timeout(60):
            while True:  # who waits for the whole lets no new part begin
                async with database.only_one("w 4", part_of="w") as part:
                    if not part:
                        break
        assert not waiting.done()
    assert await waiting
    async with database.only_one("w 1", part_of="w") as part, database.only_one("w 2", part_of="w") as other:
        assert (part, other) == (True, True)


def test_a_process_whose_event_loop_stands_still_is_ended_with_what_it_was_doing() -> None:
    ran = subprocess.run([sys.executable, "-c", _HANGS], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (1, "lives\n")
    assert "in work" in ran.stderr


def test_an_older_server_is_refused_by_its_version() -> None:
    def of(version: int) -> Any:
        return cast("Any", SimpleNamespace(info=SimpleNamespace(server_version=version)))

    check_version(of(150_004))
    with pytest.raises(ConfigurationError, match="PostgreSQL 14, and this version needs 15"):
        check_version(of(140_011))
