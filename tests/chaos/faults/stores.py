"""Faults of the service's process and of its stores: killed, or stopped without ending."""

import asyncio
import signal
from collections.abc import Sequence

import psutil

from tests.chaos.faults.rig import Rig

_HANGS_S = 30.0
PATIENCE_S = 60.0
"""For the end of a turn while PostgreSQL hangs: a statement of 15 s, then five waits of 5 s for a connection, and
the pauses between them."""


async def kill_service(rig: Rig) -> None:
    """The process and, with it, its engines; then a new one, as a supervisor would start it."""
    rig.service.kill()
    await asyncio.to_thread(rig.service.start)


async def kill_back_end(rig: Rig) -> None:
    """One connection's process, at which PostgreSQL ends all the others and recovers."""
    back_end = next(each for each in rig.postmaster.children() if " anamnesis " in " ".join(each.cmdline()))
    back_end.kill()


async def kill_postmaster(rig: Rig) -> None:
    """PostgreSQL's first process; its others end by themselves."""
    rig.postmaster.kill()


async def kill_milvus(rig: Rig) -> None:
    """The index."""
    (await rig.milvus()).kill()


async def stop_postgres(rig: Rig) -> None:
    """All of PostgreSQL's processes: connections are accepted by the kernel and never answered."""
    await _hang(rig.postgres)


async def stop_redis(rig: Rig) -> None:
    """Redis, where turns' events are kept for other processes."""
    assert rig.redis
    await _hang([psutil.Process(rig.redis.pid)])
    _expect_answers(rig)


async def stop_milvus(rig: Rig) -> None:
    """The index."""
    await _hang([await rig.milvus()])
    _expect_answers(rig)


async def _hang(processes: Sequence[psutil.Process]) -> None:
    for each in processes:
        each.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(_HANGS_S)
    finally:
        for each in processes:
            each.send_signal(signal.SIGCONT)


def _expect_answers(rig: Rig) -> None:
    """Turns go on without this store."""
    failed = {one.problem["code"] for one in rig.findings.asked if one.problem}
    rig.findings.expect(f"turns failed: {failed}", not failed)
