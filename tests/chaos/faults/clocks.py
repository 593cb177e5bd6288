"""Jumps of the wall clock of the service and its stores; clocks that count seconds are left alone."""

import asyncio
import shutil
import struct
import subprocess
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from tests.chaos.checks import query
from tests.chaos.faults.rig import Rig

_SOURCE = Path(__file__).with_name("wall_clock.c")
_FILE = "WALL_CLOCK_FILE"
_GO_ON_S = 10.0


def movable_clock(folder: Path) -> dict[str, str]:
    """Environment of a process whose wall clock a file in the folder moves.

    Raises:
        FileNotFoundError: the machine has no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("no C compiler on this machine; install the system's package gcc")
    library, clock = folder / "wall_clock.so", folder / "wall_clock"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
    clock.write_bytes(struct.pack("q", 0))
    return {"LD_PRELOAD": str(library), _FILE: str(clock)}


def jump(by: timedelta) -> Callable[[Rig], Awaitable[None]]:
    """Move the clock, and go on under the new time for 10 s."""

    async def bring(rig: Rig) -> None:
        (before,) = query(rig.database_url, "SELECT now()")[0]
        await asyncio.to_thread(_set, Path(rig.environment[_FILE]), by)
        (after,) = query(rig.database_url, "SELECT now()")[0]
        rig.findings.expect(
            f"the clock moved by {after - before}", abs(after - before - by) < timedelta(minutes=1)
        )
        run_before = _periodic_jobs(rig)
        await asyncio.sleep(_GO_ON_S)
        _expect_order(rig)
        rig.findings.expect("no periodic job has run since", _periodic_jobs(rig) > run_before)

    return bring


def _set(clock: Path, by: timedelta) -> None:
    with clock.open("r+b") as file:  # in place, as processes have mapped it
        file.write(struct.pack("q", int(by.total_seconds())))


def _periodic_jobs(rig: Rig) -> int:
    """The last one's number."""
    return int(
        query(rig.database_url, "SELECT max(id) FROM procrastinate_jobs WHERE task_name = 'index_episodes'")[0][0]
        or 0
    )


def _expect_order(rig: Rig) -> None:
    """What each speaker said is in the order in which it was said."""
    rows = query(
        rig.database_url,
        "SELECT conversation_id, content FROM messages WHERE role = 'user' AND content LIKE 'message-%'"
        " ORDER BY conversation_id, created_at, id",
    )
    said: dict[str, list[int]] = {}
    for conversation, content in rows:
        said.setdefault(conversation, []).append(int(content.rsplit("-", 1)[1]))
    wrong = sum(numbers != sorted(numbers) for numbers in said.values())
    rig.findings.expect(f"{wrong} of {len(said)} conversations are out of order", not wrong)
