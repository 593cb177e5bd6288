"""`anamnesis reindex`: make the indexes of episodes and knowledge bases anew."""

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
    """Make the indexes in Milvus anew from PostgreSQL, while the service runs. Broken off, run it again.

    Also what to do after the embedding model, or its dimensions, were changed.

    Example: `anamnesis reindex`
    """
    settings = settings_or_exit()
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")
    try:
        episodes, passages = asyncio.run(_reindex(settings))
    except AnamnesisError as error:
        fail(f"{error.message} What was indexed before is still in use; run the command again.")
    except KeyboardInterrupt:
        fail("stopped; what was indexed before is still in use. Run the command again")
    typer.echo(f"{episodes} episodes and {passages} passages of knowledge bases are in the index.")


async def _reindex(settings: Settings) -> tuple[int, int]:
    from services.bootstrap import open_services  # noqa: PLC0415 — help needs none of it

    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            memory, knowledge = services.memory.indexing, services.knowledge.indexing
            with _progress() as progress:
                episodes = progress.add_task("episodes", total=await memory.count())
                passages = progress.add_task("passages", total=await knowledge.count())
                return (
                    await memory.rebuild(lambda more: progress.advance(episodes, more)),
                    await knowledge.rebuild(lambda more: progress.advance(passages, more)),
                )


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
