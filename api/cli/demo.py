"""`anamnesis demo`: load a month of made-up conversations, or remove them."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from anamnesis_client import Anamnesis
from api.cli.erase import remove_user, show_erased
from api.cli.service import over_http
from api.cli.shell import FAILED
from api.console.demo import DEMO_USER, demo_lines


@over_http
def demo(
    service: Anamnesis,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the demo and all derived from it.")] = False,
) -> None:
    """Load a month of invented conversations in two languages, as a separate user.

    Example: `anamnesis demo`, and afterwards `anamnesis demo --remove`
    """
    if remove:
        show_erased(remove_user(service, DEMO_USER), scrubbed=False)
        return
    report = service.import_lines([demo_lines(datetime.now(UTC))])
    typer.echo(f"{report.imported} lines imported, {report.skipped} there already, for the user {DEMO_USER}.")
    typer.echo("Choose that user in the console. `anamnesis demo --remove` removes all of it.")
    if report.refused:
        raise typer.Exit(FAILED)
