"""`anamnesis jobs`: list background jobs, and retry failed ones."""

from collections.abc import Sequence
from typing import Annotated

import typer

from api.cli.shell import AsJson, Limit, OfTenant, print_json, print_page, run
from api.cli.tenants import named
from services.engines import open_database
from services.errors import Conflict
from services.identity.tenants import Tenants
from services.jobs.records import JobRecords, JobStatus, StoredJob
from services.platform.settings import Settings

app = typer.Typer(
    no_args_is_help=True, help="List background jobs and retry failed ones.", rich_markup_mode="markdown"
)

_COLUMNS = {
    "id": "id",
    "task": "task",
    "status": "status",
    "failures": "failures",
    "created_at": "created",
    "reason": "last failure",
}
_MOST_RETRIED = 1000


@app.command(name="list")
def list_(
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs with this status.")] = None,
    tenant: OfTenant = "default",
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the background jobs of a tenant, newest first. Jobs without a tenant are listed with the default one.

    Example: `anamnesis jobs list --status failed`
    """

    async def read(settings: Settings) -> Sequence[StoredJob]:
        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            return await JobRecords(database).page(owner.id, status=status, after=None, limit=limit + 1)

    print_page(_COLUMNS, run(read), limit=limit, as_json=as_json)


@app.command()
def retry(
    job_id: Annotated[
        int | None, typer.Argument(metavar="ID", min=1, max=2**63 - 1, help="The id that `jobs list` shows.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Retry every failed job of the tenant.")] = False,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Run a failed job again, with all its tries. A running service or worker takes it up.

    Example: `anamnesis jobs retry 4711`
    """
    if (job_id is None) != every:
        raise typer.BadParameter("give the id of a job, or --all", param_hint="ID")

    async def again(settings: Settings) -> list[StoredJob]:
        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            records = JobRecords(database)
            if job_id is not None:
                return [await records.retry(owner.id, job_id)]
            failed = await records.page(owner.id, status="failed", after=None, limit=_MOST_RETRIED)
            retried = []
            for job in failed:
                try:
                    retried.append(await records.retry(owner.id, job.id))
                except Conflict as error:  # an equal job is waiting already, or somebody else was quicker
                    typer.echo(f"job {job.id}: {error.message}", err=True)
            return retried

    retried = run(again)
    if as_json:
        print_json(retried)
    else:
        typer.echo(f"{len(retried)} {'job waits' if len(retried) == 1 else 'jobs wait'} for a worker.")
