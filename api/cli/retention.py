"""`anamnesis retention`: for how long a tenant keeps what, what that would remove, and removing it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from api.cli.shell import WRONG_USE, AsJson, OfTenant, Yes, confirm, fail, run
from api.cli.tenants import named
from services.engines import migrate_if_owner, open_database, open_engines
from services.identity.tenants import Tenants
from services.memory.removal.expiry_rules import KINDS, LONGEST_DAYS, Kind, RetentionRules
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.memory.removal.expiry import Retention, RetentionReport

app = typer.Typer(
    no_args_is_help=True,
    help="Decide for how long a tenant keeps what, and remove what is older.",
    rich_markup_mode="markdown",
)

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
def show(tenant: OfTenant = "default", as_json: AsJson = False) -> None:
    """Show the rules of a tenant.

    Example: `anamnesis retention show`
    """

    async def read(settings: Settings) -> dict[Kind, int]:
        async with open_database(settings) as database:
            return await RetentionRules(database).of((await named(Tenants(database), tenant)).id)

    _print_rules(run(read), as_json=as_json)


@app.command(name="set")
def set_(
    messages: Annotated[str | None, _rule("messages")] = None,
    turns: Annotated[str | None, _rule("turns")] = None,
    jobs: Annotated[str | None, _rule("jobs")] = None,
    operations: Annotated[str | None, _rule("operations")] = None,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Set rules of a tenant; the others stay. They apply from the next night on.

    Example: `anamnesis retention set --messages 365 --turns 30`
    """
    given = zip(KINDS, (messages, turns, jobs, operations), strict=True)
    changes = {kind: _days(kind, value) for kind, value in given if value is not None}
    if not changes:
        fail("name a rule, such as --messages 365 or --messages off", WRONG_USE)

    async def change(settings: Settings) -> dict[Kind, int]:
        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            return await RetentionRules(database).change(owner.id, changes)

    _print_rules(run(change), as_json=as_json)


@app.command()
def preview(tenant: OfTenant = "default", as_json: AsJson = False) -> None:
    """Count what a run would remove now; nothing is removed.

    Example: `anamnesis retention preview`
    """

    async def count(settings: Settings) -> "RetentionReport":
        async with _opened(settings, tenant) as (retention, tenant_id):
            return await retention.preview(tenant_id)

    _print_report(run(count), "would go", as_json=as_json)


@app.command(name="run")
def run_(
    tenant: OfTenant = "default",
    seconds: Annotated[float, typer.Option(min=0.1, max=86_400, help="Seconds that it may take.")] = 600.0,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove what is older than the rules allow, in batches. It can be interrupted; another run goes on.

    Example: `anamnesis retention run --yes`
    """
    confirm(f"Permanently remove what the rules of the tenant {tenant} do not keep?", yes=yes)

    async def remove(settings: Settings) -> "RetentionReport":
        async with _opened(settings, tenant) as (retention, tenant_id):
            return await retention.run(tenant_id, seconds=seconds)

    _print_report(run(remove), "removed", as_json=as_json)


@asynccontextmanager
async def _opened(settings: Settings, tenant: str) -> AsyncIterator[tuple["Retention", UUID]]:
    from services.memory.removal.expiry import Retention  # noqa: PLC0415 — help needs none of it
    from services.memory.removal.wholes import WholeErasure  # noqa: PLC0415
    from services.removal_wiring import open_stores  # noqa: PLC0415

    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_stores(settings, engines.database_url, engines.milvus_uri) as stores:
            owner = await named(Tenants(stores.database), tenant)
            erasure = WholeErasure(stores, shares_human=settings.memory_share_human)
            rules = RetentionRules(stores.database)
            yield Retention(stores.database, rules, erasure, stores.jobs), owner.id


def _days(kind: Kind, value: str) -> int | None:
    if value == _OFF:
        return None
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value[:9]) <= LONGEST_DAYS:
        fail(f"--{kind}: {value!r} is neither {_OFF} nor a number of days from 1 to {LONGEST_DAYS}", WRONG_USE)
    return int(value)


def _print_rules(rules: dict[Kind, int], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({kind: rules.get(kind) for kind in KINDS}))
        return
    table = Table("kind", "days", "what", box=None, pad_edge=False)
    for kind in KINDS:
        table.add_row(kind, str(rules.get(kind, "")), _WHAT[kind])
    Console().print(table)


def _print_report(report: "RetentionReport", verb: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(report), default=str))
        return
    if not report.kinds:
        typer.echo("There are no rules: nothing is removed. Set one: anamnesis retention set --messages 365")
    for each in report.kinds:
        counted = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in each.counts.items())
        typer.echo(f"{each.kind}, before {each.before:%Y-%m-%d %H:%M} UTC: {counted} {verb}.")
        if each.staying:
            typer.echo(f"  {each.staying} older messages stay: their conversations go on.")
    if not report.complete:
        typer.echo("The time was up before everything was removed; run it again.")
