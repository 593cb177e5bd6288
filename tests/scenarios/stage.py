"""Services for dialogues: one for each configuration, shared by files, each of which has its own tenant."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import procrastinate
import psycopg

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.api_keys import ApiKeys
from services.identity.tenants import Tenants
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE
from services.platform.settings import load_settings
from tests.conftest import UNHURRIED_MS
from tests.scenarios.dialogue import Dialogue
from tests.support.application import running_turns, served
from tests.support.databases import Databases
from tests.support.model_server import ModelServer
from tests.support.weather_server import WeatherServer

LARGE, SMALL = "large", "small"

_WAITING = """
SELECT count(*) FROM procrastinate_jobs
WHERE args->>'tenant_id' = %(tenant)s AND (status = 'doing' OR status = 'todo'
    AND (scheduled_at IS NULL OR scheduled_at <= now()))
"""
_STATUS = "SELECT status::text FROM procrastinate_jobs WHERE id = %s"
_FORGET_JOBS = "DELETE FROM procrastinate_jobs WHERE args->>'tenant_id' = ANY(%s) AND status = 'todo'"
_RUNNING = "SELECT count(*) FROM procrastinate_jobs WHERE args->>'tenant_id' = ANY(%s) AND status = 'doing'"


@dataclass
class House:
    """A service, and where it is."""

    services: Services
    url: str
    superuser_url: str

    async def new_tenant(self) -> tuple[UUID, str]:
        """A tenant with a key that may do everything."""
        tenant = await Tenants(self.services.database).create(f"t-{uuid4().hex}")
        _, key = await ApiKeys(self.services.database).create(tenant.id, "dialogue", ["admin"])
        return tenant.id, key

    async def settled(self, tenant_id: UUID, seconds: float = 60) -> None:
        """Wait until no job of the tenant runs or could run. Raises `TimeoutError` if they do not come to an
        end."""
        async with asyncio.timeout(seconds):
            while await self._count(_WAITING, {"tenant": str(tenant_id)}):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def run(self, task: str) -> str:
        """Run a job of those by the clock now; how it ended. Raises `KeyError` if there is no such task, and
        `TimeoutError` if it does not come to an end."""
        queue = self.services.jobs.app
        if task not in queue.tasks:
            raise KeyError(f"no task {task}; there are {sorted(queue.tasks)}")
        arguments = {"timestamp": int(time.time())}
        async with asyncio.timeout(60):
            while (job_id := await _deferred(queue, task, arguments)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            while (status := await self._status(job_id)) in {"todo", "doing"}:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return status

    async def _status(self, job_id: int) -> str:
        async with self.services.database.pool.connection() as connection:
            found = await (await connection.execute(_STATUS, [job_id])).fetchone()
        return str(found[0]) if found else "removed"

    async def clear(self, tenants: list[UUID]) -> None:
        """Let nothing that these tenants have caused go on."""
        ids = [[str(tenant_id) for tenant_id in tenants]]
        async with await psycopg.AsyncConnection.connect(self.superuser_url, autocommit=True) as connection:
            await connection.execute(_FORGET_JOBS, ids)
        async with asyncio.timeout(60):
            while await self._count(_RUNNING, ids):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        for tenant_id in tenants:
            await Tenants(self.services.database).remove(tenant_id)

    async def _count(self, statement: str, values: Any) -> int:
        async with self.services.database.pool.connection() as connection:
            row = await (await connection.execute(statement, values)).fetchone()
        assert row
        return int(row[0])


async def _deferred(queue: procrastinate.App, task: str, arguments: dict[str, Any]) -> int | None:
    """The id of a new job; None while one of those that run by the clock waits already."""
    try:
        return await queue.configure_task(task).defer_async(**arguments)
    except procrastinate.exceptions.AlreadyEnqueued:
        return None


@dataclass
class Stage:
    """What is there for all dialogues of a process."""

    databases: Databases
    milvus_uri: str
    model: ModelServer
    weather: WeatherServer
    stack: AsyncExitStack
    houses: dict[str, House] = field(default_factory=dict)

    async def house(self, dialogue: Dialogue) -> House:
        """The service with the settings that a dialogue wants."""
        wanted = self._settings(dialogue)
        key = json.dumps(wanted, sort_keys=True)
        if key not in self.houses:
            self.houses[key] = await self.stack.enter_async_context(self._opened(wanted))
        return self.houses[key]

    def _settings(self, dialogue: Dialogue) -> dict[str, Any]:
        models: dict[str, Any] = {}
        if not dialogue.offline:
            models = {
                "llm_model": LARGE,
                "small_llm_model": SMALL,
                "llm_base_url": self.model.base_url,
                "llm_api_key": "secret-key",
                "llm_timeout_s": 60,
            }
        places = {"{{model}}": self.model.base_url, "{{weather}}": self.weather.url, "{{nowhere}}": "127.0.0.1:1"}
        own = {}
        for name, value in dialogue.service.items():
            for place, address in places.items():
                value = value.replace(place, address) if isinstance(value, str) else value  # noqa: PLW2901
            own[name] = value
        usual = {"auth": "api_key", "weather_url": self.weather.url, "memory_recall_budget_ms": UNHURRIED_MS}
        usual |= {"memory_filing_quiet_s": 0, "memory_filing_pause_s": 0}
        usual |= {"memory_summary_min_messages": 10, "memory_summary_update_delta": 5}
        return {**usual, **models, **own}

    @asynccontextmanager
    async def _opened(self, wanted: dict[str, Any]) -> AsyncIterator[House]:
        settings = load_settings(**wanted)
        async with AsyncExitStack() as stack:
            name = stack.enter_context(self.databases.taken())
            engines = Engines(
                database_url=self.databases.postgres.url(SERVICE_ROLE, name),
                owner_url=self.databases.postgres.url(OWNER_ROLE, name),
                milvus_uri=settings.milvus_uri or self.milvus_uri,
            )
            services = await stack.enter_async_context(open_services(settings, engines))
            runner = await stack.enter_async_context(running_turns(services))
            url = await stack.enter_async_context(served(services, runner))
            services.jobs.start_worker()
            yield House(services, url, self.databases.postgres.url("postgres", name))
