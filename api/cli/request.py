"""`anamnesis api`, which sends any request of the API and prints its answer; and `anamnesis jobs retry`."""

import json
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import typer

from anamnesis_client import Anamnesis, ServiceError
from api.cli.service import over_http
from api.cli.shell import WRONG_USE, AsJson, command_group, fail, print_json, print_one, print_table

_ROOT = "api/v1/"

Fields = dict[str, Any]


@over_http
def api(
    service: Anamnesis,
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE"], typer.Argument(case_sensitive=False, help="Of HTTP.")
    ],
    path: Annotated[str, typer.Argument(help="Below /api/v1; a slash within a name is %2F.")],
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIELD=TEXT|FIELD:=JSON]...", help="Of the query of GET and DELETE, else of the body."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send a request of the API, which /docs describes, and print the answer.

    Example: `anamnesis api GET users prefix=ann`

    Example: `anamnesis api PATCH experts/film-critic model=gpt-5-mini parts_off:='["recall"]'`
    """
    segments = [unquote(each) for each in path.strip("/").removeprefix(_ROOT).split("/")]
    given = _given(fields or [])
    is_query = method in {"GET", "DELETE"}
    answer = service.request(method, *segments, **{"params" if is_query else "json": given or None})
    if as_json:
        print_json(answer)
    elif isinstance(answer, dict) and isinstance(answer.get("items"), list):
        _show(answer["items"], answer.get("next"))
    elif isinstance(answer, dict):
        print_one(answer)
    else:
        typer.echo("Done." if answer is None else answer)


def _given(fields: list[str]) -> Fields:
    given: Fields = {}
    for each in fields:
        name, separator, text = each.partition("=")
        if not separator or not name.rstrip(":"):
            fail(f"{each!r} is neither FIELD=TEXT nor FIELD:=JSON", WRONG_USE)
        value: Any = text
        if name.endswith(":"):
            name = name[:-1]
            try:
                value = json.loads(text)
            except ValueError:
                fail(f"{name}: {text!r} is not JSON; a text is given as {name}={text}", WRONG_USE)
        given[name] = value
    return given


def _show(items: list[Fields], following: str | None) -> None:
    """Print a list: the fields that any item has and that are no objects."""
    shown = {
        name: name.replace("_", " ")
        for item in items
        for name, value in item.items()
        if value not in (None, "", []) and not isinstance(value, dict) and not _has_objects(value)
    }
    print_table(shown, [{name: item.get(name) for name in shown} for item in items])
    if following is not None:
        typer.echo(f"There are more: after={following}", err=True)


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


jobs_app = command_group("Retry failed background jobs.")

_MOST_RETRIED = 1000


@jobs_app.command()
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
            except ServiceError as error:  # an equal job is already waiting, or somebody else was faster
                if error.status != HTTPStatus.CONFLICT:
                    raise
                typer.echo(f"job {job['id']}: {error.detail}", err=True)
    if as_json:
        print_json(retried)
    else:
        typer.echo(f"{len(retried)} {'job waits' if len(retried) == 1 else 'jobs wait'} for a worker.")
