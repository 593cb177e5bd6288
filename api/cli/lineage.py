"""`anamnesis lineage`: check that all derived data name what they were made from."""

from typing import Annotated

import typer

from api.cli.shell import FAILED, AsJson, OfTenant, as_counts, command_group, print_json, print_table, run
from api.cli.tenants import named
from services.engines import open_database
from services.identity.tenants import Tenants
from services.jobs.queue import JobQueue
from services.memory.lineage.audit import AuditReport, LineageAudit
from services.platform.settings import Settings

app = command_group("Check what derived data was made from.")

_COLUMNS = {
    "user": "user",
    "kind": "kind",
    "id": "id",
    "problem": "problem",
    "parent_kind": "parent",
    "parent_id": "parent id",
}


@app.callback()
def _lineage() -> None:
    """Check what derived data was made from."""


@app.command()
def audit(
    user: Annotated[str | None, typer.Option("--user", help="Only this user.")] = None,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """List derived data that has no parents, or names one that is missing. Exit code 1 where there is any.

    Example: `anamnesis lineage audit --user u-1`
    """

    async def work(settings: Settings) -> AuditReport:
        async with open_database(settings) as database:
            found = await named(Tenants(database), tenant)
            return await LineageAudit(database, JobQueue(database)).audit(found.id, user)

    report = run(work)
    if as_json:
        print_json(report)
    else:
        if report.listed:
            print_table(_COLUMNS, report.listed)
        looked_at = as_counts({"derived items": report.items, "parents": report.edges, "users": report.users})
        typer.echo(f"{report.orphans} orphans among {looked_at}.")
    if report.orphans:
        raise typer.Exit(FAILED)
