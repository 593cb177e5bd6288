"""`anamnesis demo`: load a month of made-up conversations, or remove them."""

from typing import Annotated

import typer

from anamnesis_client import Anamnesis
from api.cli.service import over_http


@over_http
def demo(
    service: Anamnesis,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the demo and all derived from it.")] = False,
) -> None:
    """Load a month of invented conversations in two languages, as a separate user.

    Example: `anamnesis demo`, and afterwards `anamnesis demo --remove`
    """
    if remove:
        service.request("DELETE", "demo")
        typer.echo("The demo is removed.")
        return
    loaded = service.request("POST", "demo")
    typer.echo(f"{loaded['turns']} turns of the user {loaded['user_id']}: choose that user in the console.")
    typer.echo("`anamnesis demo --remove` removes all of it.")
