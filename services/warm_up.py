"""Loads in the background, once the process listens, what its first turn would wait for."""

import asyncio

import structlog

from services.llm.builtin_embeddings import BuiltinEncoder, missing
from services.llm.embeddings import Embedder
from services.memory.reading.plain_forms import all_forms
from services.platform.settings import Settings
from services.text import tokenizer as terms
from services.time_reference import detect

log = structlog.get_logger(__name__)


async def load_encoder(settings: Settings) -> None:
    """Load the built-in encoder in a thread, if it is used: the first turn of a process would wait for it."""
    try:
        if settings.embedding_model is None and not await asyncio.to_thread(missing):
            await asyncio.to_thread(BuiltinEncoder(settings.data_dir / "encoder").load)
    except Exception:
        log.exception("the encoder could not be loaded beforehand")


async def warm_up(settings: Settings, embedder: Embedder | None = None) -> None:
    """Load everything in a thread, the slowest first; a turn that comes meanwhile loads what it needs."""
    try:
        if embedder is not None:
            await embedder.prepare()
        await asyncio.to_thread(load_now, settings)
    except Exception:
        log.exception("what turns need could not be loaded beforehand")


def load_now(settings: Settings) -> None:
    """Load all but the encoder; it takes a second."""
    if not settings.offline:
        from services.llm import failures, lean_openai  # noqa: F401, PLC0415 — the SDK, which takes most of a second

    all_forms()
    detect.warm()
    terms.warm()
