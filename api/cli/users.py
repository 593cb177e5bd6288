"""`anamnesis users`: list users and show one."""

from typing import Annotated

import typer

from anamnesis_client import Anamnesis
from api.cli.service import first_items, over_http
from api.cli.shell import AsJson, Limit, OfUser, command_group, print_one, print_page

app = command_group("List users and show one.")

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
@over_http
def list_(
    service: Anamnesis,
    prefix: Annotated[
        str | None, typer.Option(help="Only users whose id or display name begins with this.")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List users, by id.

    Example: `anamnesis users list --prefix ann`
    """
    print_page(_COLUMNS, first_items(service, limit, "users", prefix=prefix), limit=limit, as_json=as_json)


@app.command()
@over_http
def show(service: Anamnesis, user: OfUser, as_json: AsJson = False) -> None:
    """Show a user: time zone, locale, display name and time of creation.

    Example: `anamnesis users show u-1`
    """
    print_one(service.request("GET", "users", user), as_json=as_json)
