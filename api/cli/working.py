"""The process of the worker, which runs background jobs until a signal; and warnings at the start."""

import asyncio
import signal
from contextlib import AsyncExitStack

import structlog
import typer

from api.cli.serve import listen
from api.cli.shell import fail
from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.errors import Unavailable
from services.platform import redis
from services.platform.machine import zone_doubt
from services.platform.settings import Settings
from services.platform.tracing import TRACING
from services.platform.watchdog import ended_when_it_hangs
from services.warm_up import warm_up

log = structlog.get_logger(__name__)


async def work(settings: Settings) -> None:
    """Work until a signal. Raises `AnamnesisError` if a store does not answer, or a setting is wrong."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    TRACING.start(content=settings.otel_content)
    port = settings.worker_port
    listening = listen(settings.host, port, "WORKER_PORT") if port else None
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, TRACING.stop)
        await stack.enter_async_context(ended_when_it_hangs(settings.hang_exit_s))
        engines = await stack.enter_async_context(open_engines(settings))
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            await warm_up(settings, services.embedder)
            rebuilding = asyncio.create_task(services.index_rebuild.keep_current(), name="rebuild of the indexes")
            await warn_of_surroundings(services)
            if listening is not None:
                from api.worker import served  # noqa: PLC0415 — HTTP, which a worker without a port does without

                await stack.enter_async_context(served(services, listening))
            services.jobs.start_worker()
            typer.echo("The worker is ready.")
            stopped, failed = asyncio.create_task(stop.wait()), asyncio.create_task(services.jobs.worker_ended())
            await asyncio.wait({stopped, failed}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                fail("the worker stopped; its log says why")
            failed.cancel()
            rebuilding.cancel()


async def warn_of_surroundings(services: Services) -> None:
    """Log a warning if a configured Redis cannot be used, or if new users' time zone is not the machine's."""
    settings = services.settings
    if settings.redis_url is not None:
        try:
            await redis.probe(services.redis)
        except Unavailable as error:
            log.warning("Redis cannot be used; check ANAMNESIS_REDIS_URL", reason=error.message)
    if "default_timezone" not in settings.model_fields_set and (doubt := zone_doubt()):
        log.warning(f"{doubt}; set ANAMNESIS_DEFAULT_TIMEZONE if that is wrong")
