"""`anamnesis init` and `anamnesis config`: a file of settings to start from, and the settings in effect."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.cli.shell import AsJson, fail, print_json, read_settings
from services.platform.settings_reference import effective_settings, env_file, settings_page, unknown_variables

_OWNER_ALONE = 0o600


def init(
    to_stdout: Annotated[bool, typer.Option("--stdout", help="Print the settings and write nothing.")] = False,
) -> None:
    """Write a `.env` with every setting, its meaning and its default, commented out. An existing file is kept.

    Example: `anamnesis init`
    """
    if to_stdout:
        typer.echo(env_file(), nl=False)
        return
    path = Path(".env")
    if path.exists():
        fail("There is a .env already; it was left as it is. Print the settings with: anamnesis init --stdout")
    path.touch(_OWNER_ALONE, exist_ok=False)  # it will hold keys
    path.write_text(env_file(), encoding="utf-8")
    typer.echo("Wrote .env. Uncomment what you change, then run: anamnesis serve")


def config(
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of all settings.")] = False,
) -> None:
    """Show every setting with its value and its source: default, .env or environment. Secrets are masked.

    Unknown variables that begin with ANAMNESIS_ are named on standard error.

    Example: `anamnesis config --json`
    """
    if as_markdown:
        typer.echo(settings_page(), nl=False)
        return
    found = effective_settings(read_settings())
    if as_json:
        print_json({"settings": [asdict(each) for each in found], "unknown": unknown_variables()})
        return
    table = Table("setting", "value", "source", "accepts", box=None, pad_edge=False)
    for each in found:
        style = None if each.source == "default" else "bold"
        value = "" if each.value is None else escape(each.value)
        table.add_row(each.variable, value, each.source, escape(each.description), style=style)
    Console().print(table)
