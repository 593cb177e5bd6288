"""`anamnesis encrypt`: encrypt an installation whose users' words are stored in clear."""

import asyncio

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.reindex import rebuild_indexes
from api.cli.shell import Yes, confirm, fail, open_all_services, quiet_settings
from services.engines import open_database, open_engines, open_postgres
from services.errors import AnamnesisError
from services.platform.settings import Settings


def encrypt(yes: Yes = False) -> None:
    """Encrypt what is stored in clear: seal it user by user, rebuild the index, and rewrite the tables.

    Set ANAMNESIS_ENCRYPTION=on, make a backup, and stop the service. As soon as the command has begun, the service
    may run again, with ANAMNESIS_ENCRYPTION=on. A command that was interrupted goes on when it is run again.

    Example: `ANAMNESIS_ENCRYPTION=on anamnesis encrypt --yes`
    """
    settings = quiet_settings()
    if not settings.encryption:
        fail("Encryption is off: set ANAMNESIS_ENCRYPTION=on, and keep the keys that it makes in a safe place.")
    confirm(f"Encrypt the database, with keys in {settings.keys_folder}? It cannot be taken back.", yes=yes)
    try:
        asyncio.run(_encrypt(settings))
    except AnamnesisError as error:
        fail(f"{error.message} Run the command again to go on.")
    except KeyboardInterrupt:
        fail("stopped; run the command again to go on")


async def _encrypt(settings: Settings) -> None:
    from services.backup.caches import forget_core_memory  # noqa: PLC0415 — help needs none of it
    from services.memory.removal.scrub import scrub  # noqa: PLC0415
    from services.memory.removal.sealing import Sealing, require_alone  # noqa: PLC0415

    async with open_postgres(settings) as (database_url, _):
        await require_alone(database_url)
    async with open_database(settings, begins_encryption=True) as database:
        sealing = Sealing(database)
        progress = await sealing.progress()
        if not progress.under_way:
            typer.echo("Everything is encrypted.")
            return
        with _bar() as bar:
            users = bar.add_task("users", total=progress.users, completed=progress.sealed_users)
            count = await sealing.seal(lambda: bar.advance(users))
    async with open_all_services(settings) as services:
        with _bar() as bar:
            await rebuild_indexes(services, bar)
        await forget_core_memory(services.database, services.memory.core_cache)
        await Sealing(services.database).finish()
    typer.echo(f"Sealed {count} rows, and rebuilt the index.")
    async with open_engines(settings) as engines:
        owner_url = engines.owner_url
        if owner_url is not None:
            await scrub(owner_url)
    if owner_url is None:
        typer.echo(
            "The tables' files still hold bytes in clear: have their owner run VACUUM FULL, or set "
            "ANAMNESIS_MIGRATION_DATABASE_URL and run the command again."
        )
    else:
        typer.echo("The tables were rewritten.")
    typer.echo("Write-ahead log, replicas and backups made before hold words in clear until they are replaced.")


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
