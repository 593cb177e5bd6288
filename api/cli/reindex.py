"""`anamnesis reindex`: rebuild the indexes of memories and knowledge bases."""

import asyncio
from typing import TYPE_CHECKING

import typer
from rich.progress import Progress

from api.cli.shell import as_counts, fail, open_all_services, progress_bar, quiet_settings
from services.errors import AnamnesisError
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services


def reindex() -> None:
    """Rebuild the Milvus index from PostgreSQL without downtime. Safe to re-run.

    The service does this by itself after a change of the embedding model; the command repairs a damaged index.

    Example: `anamnesis reindex`
    """
    settings = quiet_settings()
    try:
        episodes, passages = asyncio.run(_reindex(settings))
    except AnamnesisError as error:
        fail(f"{error.message} The previous index is still in use; run the command again.")
    except KeyboardInterrupt:
        fail("stopped; the previous index is still in use, run the command again")
    typer.echo(f"Indexed {as_counts({'episodes': episodes, 'passages of knowledge bases': passages})}.")


async def _reindex(settings: Settings) -> tuple[int, int]:
    async with open_all_services(settings) as services:
        with progress_bar() as progress:
            return await rebuild_indexes(services, progress)


async def rebuild_indexes(services: "Services", progress: Progress) -> tuple[int, int]:
    """Rebuild both indexes, with a progress bar for each; return the numbers of episodes and passages.

    Raises:
        Unavailable: a store or the embedding endpoint does not answer; the previous index is still in use.
    """
    counts = await services.index_rebuild.count()
    episodes, passages = (
        progress.add_task(name, total=count) for name, count in zip(("episodes", "passages"), counts, strict=True)
    )
    return await services.index_rebuild.rebuild(
        lambda more: progress.advance(episodes, more), lambda more: progress.advance(passages, more)
    )
