"""`anamnesis migrate`: upgrade the database schema."""

import asyncio

import typer

from api.cli.shell import fail, settings_or_exit
from services.engines import open_postgres
from services.errors import AnamnesisError
from services.platform import migrate as migration
from services.platform.settings import Settings


def migrate() -> None:
    """Upgrade the schema of the database as the tables' owner.

    Example: `ANAMNESIS_DATABASE_URL=postgresql://anamnesis:…@db/anamnesis
    ANAMNESIS_MIGRATION_DATABASE_URL=postgresql://owner:…@db/anamnesis anamnesis migrate`
    """
    settings = settings_or_exit()
    try:
        before, after = asyncio.run(_migrate(settings))
    except AnamnesisError as error:
        fail(error.message)
    done = f"The schema is at {after}" if before == after else f"Upgraded the schema from {before} to {after}"
    typer.echo(f"{done}.")


async def _migrate(settings: Settings) -> tuple[str | None, str]:
    async with open_postgres(settings) as (database_url, owner_url):
        if owner_url is None:
            fail("set ANAMNESIS_MIGRATION_DATABASE_URL to the address of the tables' owner")
        return migration.migrate(owner_url, migration.role_of(database_url))
