"""`anamnesis config`: the settings in effect and where each comes from."""

from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.cli.shell import AsJson, print_json, settings_or_exit
from services.platform.settings import effective_settings, unknown_variables


def config(as_json: AsJson = False) -> None:
    """Show every setting with its value and its source: default, .env or environment. Secrets are masked.

    Variables that begin with ANAMNESIS_ and are no setting are named on standard error.

    Example: `anamnesis config --json`
    """
    found = effective_settings(settings_or_exit())
    if as_json:
        print_json({"settings": [asdict(each) for each in found], "unknown": unknown_variables()})
        return
    table = Table("setting", "value", "source", "accepts", box=None, pad_edge=False)
    for each in found:
        style = None if each.source == "default" else "bold"
        value = "" if each.value is None else escape(each.value)
        table.add_row(each.variable, value, each.source, escape(each.description), style=style)
    Console().print(table)
