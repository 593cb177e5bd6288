"""`anamnesis tenants`: create and list tenants."""

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from api.cli.shell import AsJson, fail, settings_or_exit
from services.engines import open_database
from services.errors import AnamnesisError, NotFound
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Create and list tenants.", rich_markup_mode="markdown")


@app.command()
def create(name: Annotated[str, typer.Argument(help="1 to 128 of letters, digits and ._:@-")]) -> None:
    """Create a tenant: its users, conversations and keys are invisible to other tenants.

    Example: `anamnesis tenants create web-shop`
    """
    settings = settings_or_exit()
    try:
        tenant = asyncio.run(_create(settings, name))
    except AnamnesisError as error:
        fail(error.message)
    typer.echo(f"Created the tenant {tenant.name} with the id {tenant.id}.")


@app.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List all tenants.

    Example: `anamnesis tenants list --json`
    """
    settings = settings_or_exit()
    try:
        found = asyncio.run(_list(settings))
    except AnamnesisError as error:
        fail(error.message)
    if as_json:
        rows = [{"id": str(t.id), "name": t.name, "created_at": t.created_at.isoformat()} for t in found]
        typer.echo(json.dumps(rows))
        return
    table = Table("id", "name", "created", box=None, pad_edge=False)
    for tenant in found:
        table.add_row(str(tenant.id), tenant.name, f"{tenant.created_at:%Y-%m-%d}")
    Console().print(table)


async def named(tenants: Tenants, name: str) -> Tenant:
    """The tenant of this name or id.

    Raises:
        NotFound: there is none.
    """
    if (found := await tenants.by_name_or_id(name)) is None:
        raise NotFound(f"There is no tenant {name}; see: anamnesis tenants list")
    return found


async def named_or_all(tenants: Tenants, name: str | None) -> Sequence[Tenant]:
    """Return the named tenant; without a name, all.

    Raises:
        NotFound: there is none of this name.
    """
    return [await named(tenants, name)] if name else await tenants.list()


async def _create(settings: Settings, name: str) -> Tenant:
    async with open_database(settings) as database:
        return await Tenants(database).create(name)


async def _list(settings: Settings) -> Sequence[Tenant]:
    async with open_database(settings) as database:
        return await Tenants(database).list()
