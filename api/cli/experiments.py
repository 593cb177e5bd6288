"""`anamnesis experiments`: list experiments, and report the results of their variants."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from anamnesis_client import Anamnesis
from api.cli.service import over_http
from api.cli.shell import AsJson, as_text, command_group, print_json

app = command_group(
    "List experiments and report what their variants came to. They are kept over `/api/v1/experiments`."
)

_SHARES = {"feedback_up": "thumbs up", "errors": "errors", "degraded": "degraded"}
_MEANS = {"first_token_ms": "first token, ms", "total_ms": "total, ms", "tokens": "tokens"}


@app.command(name="list")
@over_http
def list_(service: Anamnesis, as_json: AsJson = False) -> None:
    """List experiments by name.

    Example: `anamnesis experiments list`
    """
    items = list(service.items("experiments"))
    if as_json:
        print_json(items)
        return
    table = Table("name", "status", "variants", "share", "started")
    for item in items:
        names = ", ".join(variant["name"] for variant in item["variants"])
        started = as_text(item["started_at"], "started_at")
        table.add_row(item["name"], item["status"], names, f"{item['share']:.0%}", started)
    Console().print(table if items else "There are no experiments.")


@app.command()
@over_http
def report(
    service: Anamnesis,
    name: Annotated[str, typer.Argument(help="Name of the experiment.")],
    as_json: AsJson = False,
) -> None:
    """Report the results of each variant and its differences from the first, with 95 % confidence intervals.

    Example: `anamnesis experiments report more-recall`
    """
    found = service.request("GET", "experiments", name, "report")
    if as_json:
        print_json(found)
        return
    console = Console()
    variants = found["variants"]
    heading = f"{name} ({found['experiment']['status']})"
    table = Table("", *(variant["name"] for variant in variants), title=heading)
    for label, count in (("users", "users"), ("turns", "turns"), ("rated turns", "rated")):
        table.add_row(label, *(str(variant[count]) for variant in variants))
    for key, label in {**_SHARES, **_MEANS}.items():
        table.add_row(label, *(_told(key, variant) for variant in variants))
    console.print(table)
    console.print("Each with its 95 % interval, by users; below it the difference to the first variant.")


def _told(key: str, variant: dict[str, Any]) -> str:
    lines = [_estimate(key, variant["measures"][key])]
    if key in variant["differences"]:
        lines.append(_estimate(key, variant["differences"][key], sign="+"))
    return "\n".join(lines)


def _estimate(key: str, estimate: dict[str, float | None], sign: str = "") -> str:
    form = f"{sign}.1%" if key in _SHARES else f"{sign},.0f"
    value, low, high = (estimate[name] for name in ("value", "low", "high"))
    if value is None:
        return "–"
    if low is None or high is None:
        return format(value, form)
    return f"{value:{form}} ({low:{form}} to {high:{form}})"
