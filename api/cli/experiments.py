"""`anamnesis experiments`: list experiments, and report the results of their variants."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from api.cli.shell import AsJson, OfTenant, open_services_on_postgres, print_json, run
from api.cli.tenants import named
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.experiments.experiments import Experiment
    from services.experiments.report import ExperimentReport, VariantReport
    from services.experiments.statistics import Estimate

app = typer.Typer(
    no_args_is_help=True,
    help="List experiments and report what their variants came to. They are kept over `/api/v1/experiments`.",
    rich_markup_mode="markdown",
)

_SHARES = {"feedback_up": "thumbs up", "errors": "errors", "degraded": "degraded"}
_MEANS = {"first_token_ms": "first token, ms", "total_ms": "total, ms", "tokens": "tokens"}
_MOST = 1000


@app.command(name="list")
def list_(tenant: OfTenant = "default", as_json: AsJson = False) -> None:
    """List experiments by name.

    Example: `anamnesis experiments list`
    """

    async def work(settings: Settings) -> "list[Experiment]":
        async with open_services_on_postgres(settings) as services:
            found = await named(Tenants(services.database), tenant)
            return await services.experiments.page(found.id, limit=_MOST)

    items = run(work)
    if as_json:
        print_json([asdict(item) for item in items])
        return
    table = Table("name", "status", "variants", "share", "started")
    for item in items:
        started = item.started_at.isoformat(timespec="minutes") if item.started_at else ""
        names = ", ".join(variant["name"] for variant in item.variants)
        table.add_row(item.name, item.status, names, f"{item.share:.0%}", started)
    Console().print(table if items else "There are no experiments.")


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="Name of the experiment.")],
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Report the results of each variant and its differences from the first, with 95 % confidence intervals.

    Example: `anamnesis experiments report more-recall`
    """

    async def work(settings: Settings) -> "ExperimentReport":
        async with open_services_on_postgres(settings) as services:
            found = await named(Tenants(services.database), tenant)
            return await services.experiment_reports.report(found.id, name)

    found = run(work)
    if as_json:
        print_json(asdict(found))
        return
    console = Console()
    table = Table("", *(variant.name for variant in found.variants), title=f"{name} ({found.experiment.status})")
    for label, count in (("users", "users"), ("turns", "turns"), ("rated turns", "rated")):
        table.add_row(label, *(str(getattr(variant, count)) for variant in found.variants))
    for key, label in {**_SHARES, **_MEANS}.items():
        table.add_row(label, *(_told(key, variant) for variant in found.variants))
    console.print(table)
    console.print("Each with its 95 % interval, by users; below it the difference to the first variant.")


def _told(key: str, variant: "VariantReport") -> str:
    lines = [_estimate(key, variant.measures[key])]
    if key in variant.differences:
        lines.append(_estimate(key, variant.differences[key], sign="+"))
    return "\n".join(lines)


def _estimate(key: str, estimate: "Estimate", sign: str = "") -> str:
    form = f"{sign}.1%" if key in _SHARES else f"{sign},.0f"
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return format(estimate.value, form)
    return f"{estimate.value:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"
