"""Services over an embedded PostgreSQL and a scripted model, for what measures compression."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.bootstrap import Services, open_services
from services.engines import Engines, migrate_if_owner, open_engines, open_postgres
from services.platform.logs import configure_logs
from services.platform.settings import load_settings
from tests.support.model_server import ModelServer


@asynccontextmanager
async def compressing(*, index: bool = False, **overrides: Any) -> AsyncIterator[tuple[Services, ModelServer]]:
    """Open them in a new folder; with `index`, an embedded Milvus too."""
    configure_logs("console", "error")
    with (
        tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as folder,
        ModelServer() as server,
    ):
        usual = {
            "data_dir": Path(folder),
            "llm_model": "scripted",
            "llm_base_url": server.base_url,
            "llm_api_key": "none",
            "memory_summaries": False,
            "memory_topics": False,
        }
        settings = load_settings(**{**usual, **overrides})
        if index:
            async with open_engines(settings) as engines:
                await migrate_if_owner(engines)
                async with open_services(settings, engines) as services:
                    yield services, server
            return
        async with open_postgres(settings) as (database_url, owner_url):
            engines = Engines(database_url, owner_url, "")
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                yield services, server
