"""`anamnesis jobs`: retry failed background jobs."""

from http import HTTPStatus
from typing import Annotated

import typer

from anamnesis_client import Anamnesis, ServiceError
from api.cli.service import over_http
from api.cli.shell import AsJson, command_group, print_json

app = command_group("Retry failed background jobs.")

_MOST_RETRIED = 1000


@app.command()
@over_http
def retry(
    service: Anamnesis,
    job_id: Annotated[
        int | None,
        typer.Argument(metavar="ID", min=1, max=2**63 - 1, help="As `anamnesis api GET jobs` shows it."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Retry every failed job.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a failed job again, with all its tries.

    Example: `anamnesis jobs retry 4711`
    """
    if (job_id is None) != every:
        raise typer.BadParameter("give the id of a job, or --all", param_hint="ID")
    if job_id is not None:
        retried = [service.request("POST", "jobs", job_id, "retry")]
    else:
        retried = []
        for job in list(service.items("jobs", params={"status": "failed"}, limit=_MOST_RETRIED)):
            try:
                retried.append(service.request("POST", "jobs", job["id"], "retry"))
            except ServiceError as error:  # an equal job is waiting already, or somebody else was quicker
                if error.status != HTTPStatus.CONFLICT:
                    raise
                typer.echo(f"job {job['id']}: {error.detail}", err=True)
    if as_json:
        print_json(retried)
    else:
        typer.echo(f"{len(retried)} {'job waits' if len(retried) == 1 else 'jobs wait'} for a worker.")
