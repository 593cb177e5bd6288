"""At the start of a process: whether the index was made with the embedding model that is configured."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from services.errors import Unavailable

if TYPE_CHECKING:
    from services.bootstrap import Services

_LOOK_AGAIN_S = 1.0

log = structlog.get_logger(__name__)


async def begin_check(services: "Services") -> "asyncio.Task[None]":
    """Look at the index of a Milvus that ran before us; an embedded one comes up after the service listens.

    Where Milvus does not answer yet, go on looking in the background, as the service starts without it.

    Returns:
        What goes on looking. It ends only by a ConfigurationError, with which the process has to end.

    Raises:
        ConfigurationError: the index was made with another model; says what to do.
    """
    waits = True
    if services.settings.milvus_uri is not None:
        try:
            await _check(services)
            waits = False
        except Unavailable:
            log.info("the index cannot be looked at yet")
    return asyncio.create_task(_go_on(services, waits=waits), name="check of the index")


async def _go_on(services: "Services", *, waits: bool) -> None:
    while waits:
        await asyncio.sleep(_LOOK_AGAIN_S)
        with contextlib.suppress(Unavailable):
            await _check(services)
            waits = False
    await asyncio.Event().wait()


async def _check(services: "Services") -> None:
    if services.settings.memory_episodes:
        await services.memory.index.check()
    await services.knowledge.index.check()
