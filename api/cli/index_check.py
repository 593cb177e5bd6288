"""Check at the start of a process that the indexes fit the configured embedding model and this version."""

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
    """Check the index of a running Milvus; an embedded one may start only after the service listens.

    If Milvus does not answer yet, keep checking in the background: the service starts without it.

    Returns:
        The background task. It ends only with a ConfigurationError, which must end the process.

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
