"""Commands on the stores: `migrate`, `reindex`, and `encryption`, of the keys of users."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import typer

from api.cli import shell
from services.engines import open_database, open_postgres
from services.errors import ConfigurationError
from services.platform import migrate as migration
from services.platform.postgres import Database
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services


def migrate() -> None:
    """Upgrade the schema of the database as the tables' owner.

    Example: `ANAMNESIS_DATABASE_URL=postgresql://anamnesis:…@db/anamnesis
    ANAMNESIS_MIGRATION_DATABASE_URL=postgresql://owner:…@db/anamnesis anamnesis migrate`
    """
    before, after = asyncio.run(_migrate(shell.read_settings()))
    done = f"The schema is at {after}" if before == after else f"Upgraded the schema from {before} to {after}"
    typer.echo(f"{done}.")


async def _migrate(settings: Settings) -> tuple[str | None, str]:
    async with open_postgres(settings) as (database_url, owner_url):
        if owner_url is None:
            shell.fail("set ANAMNESIS_MIGRATION_DATABASE_URL to the address of the tables' owner")
        return migration.migrate(owner_url, migration.role_of(database_url))


def reindex() -> None:
    """Rebuild the Milvus index from PostgreSQL without downtime. Safe to re-run.

    The service does this by itself after a change of the embedding model; the command repairs a damaged index.

    Example: `anamnesis reindex`
    """

    async def work(settings: Settings) -> dict[str, int]:
        async with shell.open_all_services(settings) as services:
            return await rebuild_indexes(services)

    with shell.one_line_errors("The previous index is still in use; run the command again."):
        typer.echo(f"Indexed {shell.as_counts(shell.run(work))}.")


async def rebuild_indexes(services: "Services") -> dict[str, int]:
    """Rebuild both indexes, with a progress bar for each; return the number of episodes and passages. Raises
    `Unavailable` if a store or the embedding endpoint does not answer; the previous index is still in use."""
    counts = await services.index_rebuild.count()
    with shell.progress_bar() as progress:
        bars = [
            progress.add_task(name, total=count)
            for name, count in zip(("episodes", "passages"), counts, strict=True)
        ]
        episodes, passages = await services.index_rebuild.rebuild(
            *(partial(progress.advance, each) for each in bars)
        )
    return {"episodes": episodes, "passages": passages}


encryption_app = shell.command_group("Look after the keys of encrypted data.")


@encryption_app.command()
def status(as_json: shell.AsJson = False) -> None:
    """Say whether the database is encrypted, where the keys are, and of how many users.

    Example: `anamnesis encryption status`
    """

    async def work(settings: Settings) -> tuple[str, int]:
        async with open_database(settings) as database:
            vault = database.vault
            return (str(vault.keys.folder), vault.keys.count()) if vault else ("", 0)

    folder, users = shell.run(work)
    if as_json:
        shell.print_json({"encryption": bool(folder), "folder": folder or None, "users": users})
    elif folder:
        typer.echo(f"Encryption is on, with keys of {users} users in {folder}.")
    else:
        typer.echo("Encryption is off.")


@encryption_app.command()
def rotate() -> None:
    """Wrap the keys of all users with a new master key, which takes the place of the old one in its file.

    The service may run meanwhile. Users' keys stay the same, so nothing is encrypted again. Copies of the keys
    that were made before need the old master key.

    Example: `anamnesis encryption rotate`
    """

    async def work(settings: Settings) -> int:
        async with open_database(settings) as database:
            return await asyncio.to_thread(_rotate, database)

    typer.echo(f"A new master key wraps {shell.run(work)} keys.")


def _rotate(database: Database) -> int:
    if database.vault is None:
        raise ConfigurationError("Encryption is off: set ANAMNESIS_ENCRYPTION=on.")
    return database.vault.keys.rotate_master()
