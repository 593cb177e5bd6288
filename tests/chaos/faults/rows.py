"""The matrix: every fault, and what it needs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.chaos.faults import clocks, folders, models, stores
from tests.chaos.faults.rig import Rig, copy_of, new_folder
from tests.support.redis_servers import redis_process


@dataclass(frozen=True)
class Row:
    """One fault."""

    fault: str
    bring: Callable[[Rig], Awaitable[None]]
    """Brings it about and, where that is part of it, takes it away again."""
    settings: dict[str, str] = field(default_factory=dict)
    redis: bool = False
    """Whether it needs a Redis server instead of the embedded one."""
    disk: bool = False
    """Whether the data folder is on a small file system."""
    clock: bool = False
    """Whether the clock can be moved."""
    most_wait_s: float = 30.0
    """The longest that somebody may wait for an answer or an error."""


ROWS: dict[str, Row] = {
    "kill-service": Row("kill -9 of the service", stores.kill_service),
    "kill-back-end": Row("kill -9 of a PostgreSQL back end", stores.kill_back_end),
    "kill-postmaster": Row("kill -9 of the postmaster", stores.kill_postmaster),
    "kill-milvus": Row("kill -9 of Milvus", stores.kill_milvus),
    "stop-postgres": Row("SIGSTOP of PostgreSQL for 30 s", stores.stop_postgres, most_wait_s=stores.PATIENCE_S),
    "stop-redis": Row("SIGSTOP of Redis for 30 s", stores.stop_redis, redis=True),
    "stop-milvus": Row("SIGSTOP of Milvus for 30 s", stores.stop_milvus),
    "full-disk": Row("disk full for 20 s", folders.fill_disk, disk=True),
    "read-only": Row("read-only data folder at the start", folders.start_read_only, disk=True),
    "two-services": Row("two services on one data folder", folders.start_second),
    "older-program": Row("an older program on a newer schema", folders.start_older),
    "clock+1h": Row("clock jumps by +1 h", clocks.jump(timedelta(hours=1)), clock=True),
    "clock+1d": Row("clock jumps by +1 day", clocks.jump(timedelta(days=1)), clock=True),
    "clock-1h": Row("clock jumps by -1 h", clocks.jump(timedelta(hours=-1)), clock=True),
    "clock-1d": Row("clock jumps by -1 day", clocks.jump(timedelta(days=-1)), clock=True),
    "slow-model": Row(
        "a model that sends one token a minute",
        models.strange(models.a_token_a_minute, ends_as={502}, within_s=30),
        {"llm_timeout_s": "10"},
    ),
    "endless-answer": Row(
        "a model that answers with 10 MB",
        models.strange(models.ten_megabytes, ends_as={200}, within_s=30, finish="length"),
    ),
    "endless-tools": Row(
        "a model that calls tools without end",
        models.strange(models.endless_calls, ends_as={200, 502}, within_s=30),
    ),
    "invalid-arguments": Row(
        "a model that calls tools with invalid arguments",
        models.strange(models.invalid_arguments, ends_as={200}, within_s=30),
    ),
    "unknown-tools": Row(
        "a model that calls unknown tools", models.strange(models.unknown_tool, ends_as={200}, within_s=30)
    ),
}


@asynccontextmanager
async def rig_for(row: Row, template: Path) -> AsyncIterator[Rig]:
    """The service as the row needs it, started, on a copy of a prepared data folder."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(new_folder()))
        place = stack.enter_context(folders.small_disk(folder)) if row.disk else folder
        rig = Rig(await asyncio.to_thread(copy_of, template, place), row.settings)
        if row.clock:
            rig.environment = clocks.movable_clock(folder)
        if row.redis:
            redis = stack.enter_context(redis_process(folder, "--save", ""))
            rig.redis, rig.settings["redis_url"] = redis.process, f"redis://127.0.0.1:{redis.port}/0"
        stack.push_async_callback(rig.stop)
        await rig.start()
        yield rig
