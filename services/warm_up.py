"""Load in the background, once the process listens, what its first turn would wait for."""

import asyncio
from typing import TYPE_CHECKING

import structlog

from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.llm.embeddings import Embedder

log = structlog.get_logger(__name__)


async def warm_up(settings: Settings, embedder: "Embedder | None" = None) -> None:
    """Load everything in a thread, what takes longest first; a turn that comes meanwhile loads what it needs."""
    try:
        if embedder is not None:
            await asyncio.to_thread(embedder.load)
        await asyncio.to_thread(_load, settings)
    except Exception:
        log.exception("what turns need could not be loaded beforehand")


def _load(settings: Settings) -> None:
    # Commands that answer nobody do without all of it.
    if not settings.offline:
        from services.llm import failures, lean_openai  # noqa: F401, PLC0415

    from services.text import tokenizer as terms  # noqa: PLC0415
    from services.time_reference import detect  # noqa: PLC0415

    detect.warm()
    terms.warm()
