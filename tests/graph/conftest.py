"""Two turn runners over the same stores, as two processes have them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from graph.turns.runner import TurnRunner
from services.bootstrap import Services, open_services
from services.engines import Engines
from services.platform.settings import Settings, load_settings
from tests.support.application import running_turns
from tests.support.ports import free_port


@asynccontextmanager
async def process_of(settings: Settings, engines: Engines) -> AsyncIterator[tuple[Services, TurnRunner]]:
    """Services and a turn runner, as a process has them."""
    async with open_services(settings, engines) as services, running_turns(services) as runner:
        yield services, runner


@pytest.fixture
def shared_settings(settings: Settings, redis_server: str) -> Settings:
    """The same settings, with a Redis that every process reaches."""
    values = settings.model_dump(exclude_unset=True)
    return load_settings(**{**values, "redis_url": redis_server})


@pytest.fixture
async def here(shared_settings: Settings, engines: Engines) -> AsyncIterator[tuple[Services, TurnRunner]]:
    """One process."""
    async with process_of(shared_settings, engines) as process:
        yield process


@pytest.fixture
async def there(shared_settings: Settings, engines: Engines) -> AsyncIterator[tuple[Services, TurnRunner]]:
    """Another process."""
    async with process_of(shared_settings, engines) as process:
        yield process


@pytest.fixture
async def runner_without_redis(settings: Settings, engines: Engines) -> AsyncIterator[tuple[Services, TurnRunner]]:
    """A process whose Redis is not there."""
    values = settings.model_dump(exclude_unset=True)
    away = load_settings(**{**values, "redis_url": f"redis://127.0.0.1:{free_port()}/0"})
    async with process_of(away, engines) as process:
        yield process
