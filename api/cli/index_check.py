"""Check at the start of a process that the indexes fit the configured embedding model and this version."""

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import structlog

from services.errors import Unavailable

if TYPE_CHECKING:
    from services.bootstrap import Services

_LOOK_AGAIN_S = 1.0
_LOOK_FOR_REBUILD_S = 60.0
_LOOK_AGAIN_AT_START_S = 0.2
_EMBEDDED_STARTS_S = 30.0
_NOTE = "index-model"
"""File of the data folder that names the embedding model of its index."""

log = structlog.get_logger(__name__)


async def begin_check(services: "Services") -> "asyncio.Task[None]":
    """Check the index of a running Milvus; an embedded one may start only after the service listens.

    If Milvus does not answer yet, keep checking in the background: the service starts without it. Only where the
    data folder's own note names another embedding model is an embedded one waited for: most likely the process
    must not start.

    Returns:
        The background task. It ends only with a ConfigurationError, which must end the process.

    Raises:
        ConfigurationError: the index was made with another model; says what to do.
    """
    waits = True
    is_embedded = services.settings.milvus_uri is None
    if not is_embedded or _noted(services) not in {None, _configured(services)}:
        end = time.monotonic() + (_EMBEDDED_STARTS_S if is_embedded else 0)
        while waits:
            try:
                await _check(services)
                waits = False
            except Unavailable:
                if time.monotonic() >= end:
                    log.info("the index cannot be looked at yet")
                    break
                await asyncio.sleep(_LOOK_AGAIN_AT_START_S)
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
    if services.settings.milvus_uri is None and _noted(services) != (configured := _configured(services)):
        with contextlib.suppress(OSError):  # then the next start looks later
            (services.settings.data_dir / _NOTE).write_text(configured)
    if indexes_are_outdated(services) and not was_outdated:
        log.warning("the index was made by an older version; run: anamnesis reindex")


def _configured(services: "Services") -> str:
    return f"{services.embedder.model} {services.embedder.dimension}"


def _noted(services: "Services") -> str | None:
    """With which model the index of the data folder was made when it was last looked at."""
    try:
        return (services.settings.data_dir / _NOTE).read_text()
    except (OSError, UnicodeDecodeError):
        return None
