"""`anamnesis worker`: run background jobs in a separate process."""

import asyncio

from api.cli.shell import fail, settings_or_exit
from services.errors import AnamnesisError


def worker() -> None:
    """Run background jobs for services started with ANAMNESIS_WORKER=external.

    Example: `ANAMNESIS_DATABASE_URL=postgresql://anamnesis:…@db/anamnesis anamnesis worker`
    """
    from api.cli.working import work  # noqa: PLC0415 — half a second, which other commands do without

    settings = settings_or_exit()
    try:
        asyncio.run(work(settings))
    except AnamnesisError as error:
        fail(error.message)
