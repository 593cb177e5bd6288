"""`anamnesis retention`: for how long a tenant keeps what, what that would remove, and removing it."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from anamnesis_client import Anamnesis
from api.cli.service import over_http
from api.cli.shell import WRONG_USE, AsJson, Yes, as_text, command_group, confirm, fail, print_json
from services.memory.removal.expiry import KINDS, LONGEST_DAYS, Kind

app = command_group("Decide for how long a tenant keeps what, and remove what is older.")

_OFF = "off"
_WHAT: dict[Kind, str] = {
    "messages": "conversations in which nothing was said since",
    "turns": "prompts, reports and requests of turns",
    "jobs": "finished background jobs",
    "operations": "the log of memory, which undo needs",
}


def _rule(kind: Kind) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{kind}", metavar="DAYS", help=f"Days to keep {_WHAT[kind]}; off = no rule."
    )
    return option


@app.command()
@over_http
def show(service: Anamnesis, as_json: AsJson = False) -> None:
    """Show the rules.

    Example: `anamnesis retention show`
    """
    _print_rules(service.request("GET", "retention"), as_json=as_json)


@app.command(name="set")
@over_http
def set_(
    service: Anamnesis,
    messages: Annotated[str | None, _rule("messages")] = None,
    turns: Annotated[str | None, _rule("turns")] = None,
    jobs: Annotated[str | None, _rule("jobs")] = None,
    operations: Annotated[str | None, _rule("operations")] = None,
    as_json: AsJson = False,
) -> None:
    """Set rules; the others stay. They apply from the next night on.

    Example: `anamnesis retention set --messages 365 --turns 30`
    """
    given = zip(KINDS, (messages, turns, jobs, operations), strict=True)
    changes = {kind: _days(kind, value) for kind, value in given if value is not None}
    if not changes:
        fail("name a rule, such as --messages 365 or --messages off", WRONG_USE)
    rules = {**service.request("GET", "retention"), **changes}
    _print_rules(service.request("PUT", "retention", json=rules), as_json=as_json)


@app.command()
@over_http
def preview(service: Anamnesis, as_json: AsJson = False) -> None:
    """Count what a run would remove now; nothing is removed.

    Example: `anamnesis retention preview`
    """
    _print_report(service.request("POST", "retention", "preview"), "would go", as_json=as_json)


@app.command(name="run")
@over_http
def run_(
    service: Anamnesis,
    seconds: Annotated[float, typer.Option(min=0.1, max=300, help="Seconds that it may take.")] = 300.0,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove what is older than the rules allow, in batches. It can be interrupted; another run goes on.

    Example: `anamnesis retention run --yes`
    """
    confirm("Permanently remove what the rules do not keep?", yes=yes)
    _print_report(
        service.request("POST", "retention", "run", json={"seconds": seconds}), "removed", as_json=as_json
    )


def _days(kind: Kind, value: str) -> int | None:
    if value == _OFF:
        return None
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value[:9]) <= LONGEST_DAYS:
        fail(f"--{kind}: {value!r} is neither {_OFF} nor a number of days from 1 to {LONGEST_DAYS}", WRONG_USE)
    return int(value)


def _print_rules(rules: dict[str, int | None], *, as_json: bool) -> None:
    if as_json:
        print_json(rules)
        return
    table = Table("kind", "days", "what", box=None, pad_edge=False)
    for kind in KINDS:
        table.add_row(kind, as_text(rules[kind]), _WHAT[kind])
    Console().print(table)


def _print_report(report: dict[str, Any], verb: str, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    if not report["kinds"]:
        typer.echo("There are no rules: nothing is removed. Set one: anamnesis retention set --messages 365")
    for each in report["kinds"]:
        counted = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in each["counts"].items())
        typer.echo(f"{each['kind']}, before {each['before'][:16].replace('T', ' ')} UTC: {counted} {verb}.")
        if each["staying"]:
            typer.echo(f"  {each['staying']} older messages stay: their conversations go on.")
    if not report["complete"]:
        typer.echo("The time was up before everything was removed; run it again.")
