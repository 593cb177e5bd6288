"""`anamnesis users`: list users and show one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.shell import AsJson, Limit, OfTenant, OfUser, print_fields, print_json, print_page, run
from api.cli.tenants import named
from services.engines import open_database
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.conversations.users import ListedUser, User

app = typer.Typer(no_args_is_help=True, help="List users and show one.", rich_markup_mode="markdown")

_COLUMNS = {
    "user_id": "user",
    "display_name": "name",
    "timezone": "time zone",
    "conversations": "conversations",
    "messages": "messages",
    "episodes": "memories",
    "last_active_at": "last active",
}


@app.command(name="list")
def list_(
    prefix: Annotated[
        str | None, typer.Option(help="Only users whose id or display name begins with this.")
    ] = None,
    tenant: OfTenant = "default",
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the users of a tenant, by id.

    Example: `anamnesis users list --prefix ann`
    """

    async def read(settings: Settings) -> "Sequence[ListedUser]":
        from services.conversations.users import Users  # noqa: PLC0415 — help needs none of it

        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            return await Users(database).page(owner.id, prefix=prefix, limit=limit + 1)

    print_page(_COLUMNS, run(read), limit=limit, as_json=as_json)


@app.command()
def show(user: OfUser, tenant: OfTenant = "default", as_json: AsJson = False) -> None:
    """Show a user: time zone, locale, display name and time of creation.

    Example: `anamnesis users show u-1`
    """

    async def read(settings: Settings) -> "User":
        from services.conversations.users import Users  # noqa: PLC0415 — help needs none of it

        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            return await Users(database).get(owner.id, user)

    found = run(read)
    if as_json:
        print_json(found)
    else:
        print_fields(found)
