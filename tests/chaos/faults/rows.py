"""The matrix: every fault, and what it needs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.faults import stores
from tests.chaos.faults.rig import Rig, copy_of, new_folder, redis_server


@dataclass(frozen=True)
class Row:
    """One fault."""

    fault: str
    bring: Callable[[Rig], Awaitable[None]]
    """Brings it about and, where that is part of it, takes it away again."""
    settings: dict[str, str] = field(default_factory=dict)
    redis: bool = False
    """Whether it needs a Redis server instead of the embedded one."""


ROWS: dict[str, Row] = {
    "kill-service": Row("kill -9 of the service", stores.kill_service),
    "kill-back-end": Row("kill -9 of a PostgreSQL back end", stores.kill_back_end),
    "kill-postmaster": Row("kill -9 of the postmaster", stores.kill_postmaster),
    "kill-milvus": Row("kill -9 of Milvus", stores.kill_milvus),
    "stop-postgres": Row("SIGSTOP of PostgreSQL for 30 s", stores.stop_postgres),
    "stop-redis": Row("SIGSTOP of Redis for 30 s", stores.stop_redis, redis=True),
    "stop-milvus": Row("SIGSTOP of Milvus for 30 s", stores.stop_milvus),
}


@asynccontextmanager
async def rig_for(row: Row, template: Path) -> AsyncIterator[Rig]:
    """The service as the row needs it, started, on a copy of a prepared data folder."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(new_folder()))
        rig = Rig(await asyncio.to_thread(copy_of, template, folder), row.settings)
        if row.redis:
            rig.redis, rig.settings["redis_url"] = await stack.enter_async_context(redis_server())
        stack.push_async_callback(rig.stop)
        await rig.start()
        yield rig
