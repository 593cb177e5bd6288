"""`anamnesis demo`: load a month of made-up conversations, or remove them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from api.cli.erase import erase
from api.cli.shell import FAILED, OfTenant, fail, quiet_settings
from api.cli.transfer import import_chunks
from api.console.demo import DEMO_USER, demo_lines
from services.errors import AnamnesisError


def demo(
    remove: Annotated[bool, typer.Option("--remove", help="Remove the demo and all derived from it.")] = False,
    tenant: OfTenant = "default",
) -> None:
    """Load a month of invented conversations in two languages, as a separate user.

    Example: `anamnesis demo`, and afterwards `anamnesis demo --remove`
    """
    if remove:
        erase(DEMO_USER, tenant, yes=True)
        return
    try:
        report = asyncio.run(import_chunks(quiet_settings(), tenant, _chunks()))
    except AnamnesisError as error:
        fail(error.message)
    typer.echo(f"{report.imported} lines imported, {report.skipped} there already, for the user {DEMO_USER}.")
    typer.echo("Choose that user in the console. `anamnesis demo --remove` removes all of it.")
    if report.refused:
        raise typer.Exit(FAILED)


async def _chunks() -> AsyncIterator[bytes]:
    yield demo_lines(datetime.now(UTC))
