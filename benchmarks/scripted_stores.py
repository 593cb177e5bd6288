"""Embedded stores in their own folder, and a model that answers from a script: for benchmarks of memory."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.engines import Engines, migrate_if_owner, open_engines
from services.platform.logs import configure_logs
from services.platform.settings import Settings, load_settings
from tests.support.model_server import ModelServer

_RECALL_BUDGET_MS = 5_000
"""A machine under load must not decide what a prompt holds."""


@dataclass(frozen=True)
class ScriptedStores:
    """Stores that are migrated and empty."""

    folder: Path
    engines: Engines
    model: ModelServer
    settings: Settings
    """With the scripted model."""
    offline: Settings
    """Without a model: rules do what a small model would."""


@contextmanager
def _new_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        yield folder


@asynccontextmanager
async def scripted_stores() -> AsyncIterator[ScriptedStores]:
    """Start the engines and the model's server; both end and the folder is removed on leaving."""
    configure_logs("console", "error")
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(_new_folder())
        model = stack.enter_context(ModelServer())
        offline = load_settings(data_dir=folder, memory_recall_budget_ms=_RECALL_BUDGET_MS)
        scripted = load_settings(
            data_dir=folder,
            memory_recall_budget_ms=_RECALL_BUDGET_MS,
            llm_model="scripted",
            llm_base_url=model.base_url,
            llm_api_key="none",
        )
        engines = await stack.enter_async_context(open_engines(offline))
        await migrate_if_owner(engines)
        yield ScriptedStores(folder, engines, model, scripted, offline)
