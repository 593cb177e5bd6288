"""Check the indexes at the start of a process: made with the configured embedding model, and by this version."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from services.errors import Unavailable

if TYPE_CHECKING:
    from services.bootstrap import Services

_LOOK_AGAIN_S = 1.0
_LOOK_FOR_REBUILD_S = 60.0

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
    from services.health import indexes_are_outdated  # noqa: PLC0415 — commands need no clients of stores

    while waits or indexes_are_outdated(services):
        await asyncio.sleep(_LOOK_AGAIN_S if waits else _LOOK_FOR_REBUILD_S)
        with contextlib.suppress(Unavailable):
            await _check(services)
            waits = False
    await asyncio.Event().wait()


async def _check(services: "Services") -> None:
    from services.health import check_indexes, indexes_are_outdated  # noqa: PLC0415

    was_outdated = indexes_are_outdated(services)
    await check_indexes(services)
    if indexes_are_outdated(services) and not was_outdated:
        log.warning("the index was made by an older version; run: anamnesis reindex")
