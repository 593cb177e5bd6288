"""`anamnesis tenants`: create and list tenants."""

from collections.abc import Sequence
from typing import Annotated

import typer

from api.cli.shell import AsJson, command_group, print_json, print_table, run
from services.engines import open_database
from services.errors import NotFound
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

app = command_group("Create and list tenants.")


@app.command()
def create(name: Annotated[str, typer.Argument(help="1 to 128 of letters, digits and ._:@-")]) -> None:
    """Create a tenant: its users, conversations and keys are invisible to other tenants.

    Example: `anamnesis tenants create web-shop`
    """

    async def work(settings: Settings) -> Tenant:
        async with open_database(settings) as database:
            return await Tenants(database).create(name)

    tenant = run(work)
    typer.echo(f"Created the tenant {tenant.name} with the id {tenant.id}.")


@app.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List all tenants.

    Example: `anamnesis tenants list --json`
    """

    async def work(settings: Settings) -> Sequence[Tenant]:
        async with open_database(settings) as database:
            return await Tenants(database).list()

    found = run(work)
    if as_json:
        print_json(found)
    else:
        print_table({"id": "id", "name": "name", "created_at": "created"}, found)


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
