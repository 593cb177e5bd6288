"""What the commands share: the Typer application, settings, and errors in one line on standard error."""

from typing import Annotated, Any, NoReturn

import typer

from services.errors import AnamnesisError, InvalidInput
from services.platform.logs import configure_logs
from services.platform.settings import Settings, load_settings, unknown_variables

FAILED = 1
WRONG_USE = 2

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Named = Annotated[str | None, typer.Option("--tenant", help="Name or id of a tenant.")]


def make_shell() -> typer.Typer:
    """The application that commands are added to."""
    return typer.Typer(
        name="anamnesis",
        help="A self-hosted conversational agent service that remembers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )


def settings_or_exit(**overrides: Any) -> Settings:
    """The settings; a wrong one ends the program with one line."""
    try:
        settings = load_settings(**{name: value for name, value in overrides.items() if value is not None})
    except AnamnesisError as error:
        fail(error.message, WRONG_USE)
    configure_logs(settings.log_format, settings.log_level)
    for line in unknown_variables():
        typer.echo(f"anamnesis: warning: {line}", err=True)
    return settings


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End the program with one line on standard error."""
    typer.echo(f"anamnesis: {message}", err=True)
    raise typer.Exit(code)


def told(error: AnamnesisError) -> str:
    """What an error says, with the field that is wrong."""
    return f"{error.field}: {error.message}" if isinstance(error, InvalidInput) else error.message
