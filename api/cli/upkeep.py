"""`anamnesis upkeep`: the policy by which unused memories fade, a preview, runs and their undoing."""

from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from anamnesis_client import Anamnesis
from api.cli.service import over_http
from api.cli.shell import AsJson, Limit, OfUser, as_counts, command_group, given, print_json, print_table
from services.memory.upkeep.policy import Fading

app = command_group("Merge memories that say the same, and let unused ones fade: preview, run, report and undo.")

Days = Annotated[int | None, typer.Option(min=1, max=36_500, help="Days without use after which they fade.")]
Importance = Annotated[float | None, typer.Option(min=0, max=1, help="Importance below which they fade.")]
How = Annotated[Literal["archive"] | None, typer.Option("--fading", help="Archive, whatever the policy says.")]
RunId = Annotated[UUID, typer.Argument(metavar="RUN", help="Id of the run.")]


@app.command()
@over_http
def policy(
    service: Anamnesis,
    fading: Annotated[Fading | None, typer.Option("--fading", help="What becomes of unused memories.")] = None,
    days: Days = None,
    importance: Importance = None,
    as_json: AsJson = False,
) -> None:
    """Show the policy of upkeep; with options, change what they name.

    Example: `anamnesis upkeep policy --fading archive --days 180`
    """
    found = service.request("GET", "upkeep-policy")
    if changed := given(fading=fading, fading_days=days, fading_importance=importance):
        found = service.request("PUT", "upkeep-policy", json={**found, **changed})
    if as_json:
        print_json(found)
        return
    figures = f"unimportant is below {found['fading_importance']:g}, unused is {found['fading_days']} days"
    typer.echo(f"Unused memories: {found['fading']} ({figures}).")


@app.command()
@over_http
def preview(
    service: Anamnesis,
    user: OfUser,
    fading: How = None,
    days: Days = None,
    importance: Importance = None,
    as_json: AsJson = False,
) -> None:
    """List what a run would merge and take now, and why. Options take the place of the policy's figures.

    Example: `anamnesis upkeep preview u-1 --fading archive --days 60`
    """
    tried = {"fading": fading, "fading_days": days, "fading_importance": importance}
    found = service.request("GET", "users", user, "upkeep-preview", params=tried)
    if as_json:
        print_json(found)
        return
    if not found["total"] and not found["merges"]:
        typer.echo("Nothing would change.")
        return
    if found["merges"]:
        print_table({"id": "id", "content": "memory", "kept_content": "said as well by"}, found["merges"])
        typer.echo(f"{as_counts({'memories': len(found['merges'])})} would be merged.")
    if found["total"]:
        print_table({"id": "id", "content": "memory", "why": "why"}, found["fading"])
        typer.echo(f"{as_counts({'memories': found['total']})} would be archived.")


@app.command(name="run")
@over_http
def run_(
    service: Anamnesis,
    user: OfUser,
    fading: How = None,
    days: Days = None,
    importance: Importance = None,
    as_json: AsJson = False,
) -> None:
    """Merge what says the same, and let unused memories fade now. Options take the place of the policy's figures.

    Example: `anamnesis upkeep run u-1`
    """
    tried = given(fading=fading, fading_days=days, fading_importance=importance)
    report = service.request("POST", "users", user, "upkeep-runs", json=tried)
    if as_json:
        print_json(report)
        return
    if not report["merged_ids"] and not report["faded_ids"]:
        typer.echo("Nothing changed.")
        return
    merged, faded = ({"memories": len(report[kind])} for kind in ("merged_ids", "faded_ids"))
    typer.echo(f"{as_counts(merged)} merged, {as_counts(faded)} archived.")
    if report["can_be_undone"]:
        typer.echo(f"To undo: anamnesis upkeep undo {user} {report['id']}")


@app.command()
@over_http
def runs(service: Anamnesis, user: OfUser, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the runs of a user, newest first.

    Example: `anamnesis upkeep runs u-1`
    """
    found: list[dict[str, Any]] = list(service.items("users", user, "upkeep-runs", limit=limit))
    if as_json:
        print_json(found)
        return
    columns = {
        "id": "id", "created_at": "when", "reason": "reason", "merged": "merged", "faded": "faded",
        "undone_at": "undone",
    }  # fmt: skip
    print_table(
        columns,
        [{**each, "merged": len(each["merged_ids"]), "faded": len(each["faded_ids"])} for each in found],
    )


@app.command()
@over_http
def undo(service: Anamnesis, user: OfUser, run_id: RunId) -> None:
    """Bring back everything that a run took.

    Example: `anamnesis upkeep undo u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    service.request("POST", "users", user, "upkeep-runs", run_id, "undo")
    typer.echo(f"Undid the run {run_id}.")


@app.command()
@over_http
def restore(
    service: Anamnesis,
    user: OfUser,
    memory_id: Annotated[UUID, typer.Argument(metavar="MEMORY", help="Id of the memory.")],
) -> None:
    """Bring one archived memory back.

    Example: `anamnesis upkeep restore u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    service.request("POST", "users", user, "episodes", memory_id, "restore")
    typer.echo(f"Restored the memory {memory_id}.")
