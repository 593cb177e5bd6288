"""`anamnesis reindex`: make the index of episodes anew."""

import asyncio

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import fail, settings_or_exit
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError
from services.platform.logs import configure_logs
from services.platform.settings import Settings


def reindex() -> None:
    """Make the index in Milvus anew from PostgreSQL, while the service runs. Broken off, run it again.

    Also what to do after the embedding model, or its dimensions, were changed.

    Example: `anamnesis reindex`
    """
    settings = settings_or_exit()
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")
    try:
        count = asyncio.run(_reindex(settings))
    except AnamnesisError as error:
        fail(f"{error.message} What was indexed before is still in use; run the command again.")
    except KeyboardInterrupt:
        fail("stopped; what was indexed before is still in use. Run the command again")
    typer.echo(f"{count} episodes are in the index.")


async def _reindex(settings: Settings) -> int:
    from services.bootstrap import open_services  # noqa: PLC0415 — help needs none of it

    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            indexing = services.memory.indexing
            with _progress() as progress:
                bar = progress.add_task("episodes", total=await indexing.count())
                return await indexing.rebuild(lambda more: progress.advance(bar, more))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
