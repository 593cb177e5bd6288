"""`anamnesis encryption`: where users' keys are, and a new master key."""

import asyncio

import typer

from api.cli.shell import AsJson, command_group, print_json, run
from services.engines import open_database
from services.errors import ConfigurationError
from services.platform.postgres import Database
from services.platform.settings import Settings

app = command_group("Look after the keys of encrypted data.")


@app.callback()
def _encryption() -> None:
    """Look after the keys of encrypted data."""


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say whether the database is encrypted, where the keys are, and of how many users.

    Example: `anamnesis encryption status`
    """

    async def work(settings: Settings) -> tuple[str, int]:
        async with open_database(settings) as database:
            vault = database.vault
            return (str(vault.keys.folder), vault.keys.count()) if vault else ("", 0)

    folder, users = run(work)
    if as_json:
        print_json({"encryption": bool(folder), "folder": folder or None, "users": users})
    elif folder:
        typer.echo(f"Encryption is on, with keys of {users} users in {folder}.")
    else:
        typer.echo("Encryption is off.")


@app.command()
def rotate() -> None:
    """Wrap the keys of all users with a new master key, which takes the place of the old one in its file.

    The service may run meanwhile. Users' keys stay the same, so nothing is encrypted again. Copies of the keys
    that were made before need the old master key.

    Example: `anamnesis encryption rotate`
    """

    async def work(settings: Settings) -> int:
        async with open_database(settings) as database:
            return await asyncio.to_thread(_rotate, database)

    typer.echo(f"A new master key wraps {run(work)} keys.")


def _rotate(database: Database) -> int:
    if database.vault is None:
        raise ConfigurationError("Encryption is off: set ANAMNESIS_ENCRYPTION=on.")
    return database.vault.keys.rotate_master()
