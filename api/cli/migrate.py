"""`anamnesis migrate`: upgrade the database schema."""

import asyncio

import typer

from api.cli.shell import fail, settings_or_exit
from services.engines import open_postgres
from services.errors import AnamnesisError
from services.platform import migrate as migration
from services.platform.settings import Settings
from services.shards.addresses import HOME, settings_of_shards


def migrate() -> None:
    """Upgrade the schema of the database, and of every shard, as the tables' owner.

    Example: `ANAMNESIS_DATABASE_URL=postgresql://anamnesis:…@db/anamnesis
    ANAMNESIS_MIGRATION_DATABASE_URL=postgresql://owner:…@db/anamnesis anamnesis migrate`
    """
    settings = settings_or_exit()
    try:
        shards = settings_of_shards(settings)
        for name, of_shard in shards.items():
            before, after = asyncio.run(_migrate(name, of_shard))
            done = (
                f"The schema is at {after}" if before == after else f"Upgraded the schema from {before} to {after}"
            )
            typer.echo(f"{done}{'' if len(shards) == 1 else f' in {name}'}.")
    except AnamnesisError as error:
        fail(error.message)


async def _migrate(name: str, settings: Settings) -> tuple[str | None, str]:
    async with open_postgres(settings) as (database_url, owner_url):
        if owner_url is None:
            setting = "ANAMNESIS_MIGRATION_DATABASE_URL" if name == HOME else f"migration_database_url of [{name}]"
            fail(f"set {setting} to the address of the tables' owner")
        return migration.migrate(owner_url, migration.role_of(database_url))
