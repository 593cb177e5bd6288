"""`anamnesis upkeep`: the policy by which unused memories fade, a preview, runs and their undoing."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from api.cli.shell import (
    AsJson,
    Limit,
    OfTenant,
    OfUser,
    Result,
    as_counts,
    open_services_on_postgres,
    print_json,
    print_table,
    run,
)
from api.cli.tenants import named
from services.identity.tenants import Tenants
from services.memory.upkeep.policy import Fading, Handling
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.memory.upkeep.policy import UpkeepPolicy
    from services.memory.upkeep.run import UpkeepPreview, UpkeepRun
    from services.memory.upkeep.upkeep import Upkeep

app = typer.Typer(
    no_args_is_help=True,
    help="Merge memories that say the same, and let unused ones fade: preview, run, report and undo.",
    rich_markup_mode="markdown",
)

Days = Annotated[int | None, typer.Option(min=1, max=36_500, help="Days without use after which they fade.")]
Importance = Annotated[float | None, typer.Option(min=0, max=1, help="Importance below which they fade.")]
How = Annotated[Fading | None, typer.Option("--fading", help="What becomes of unused memories.")]
RunId = Annotated[UUID, typer.Argument(metavar="RUN", help="Id of the run.")]


@app.command()
def policy(
    tenant: OfTenant = "default",
    fading: How = None,
    days: Days = None,
    importance: Importance = None,
    proposals: Annotated[
        Handling | None, typer.Option(help="Whether what is found at night waits, or is applied.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a tenant's policy of upkeep; with options, change what they name.

    Example: `anamnesis upkeep policy --fading archive --days 180`
    """

    async def work(services: "Upkeep", tenant_id: UUID) -> "UpkeepPolicy":
        stored = await services.policies.of(tenant_id)
        wanted = replace(_with(stored, fading, days, importance), proposals=proposals or stored.proposals)
        if wanted != stored:
            await services.policies.set(tenant_id, wanted)
        return wanted

    found = _with_upkeep(tenant, work)
    if as_json:
        print_json(found)
        return
    figures = f"unimportant is below {found.fading_importance:g}, unused is {found.fading_days} days"
    typer.echo(f"Unused memories: {found.fading} ({figures}). Duplicates and contradictions: {found.proposals}.")


@app.command()
def preview(
    user: OfUser,
    tenant: OfTenant = "default",
    fading: How = None,
    days: Days = None,
    importance: Importance = None,
    as_json: AsJson = False,
) -> None:
    """List what a run would merge and take now, and why. Options take the place of the policy's figures.

    Example: `anamnesis upkeep preview u-1 --fading archive --days 60`
    """

    async def work(services: "Upkeep", tenant_id: UUID) -> "UpkeepPreview":
        tried = _with(await services.policies.of(tenant_id), fading, days, importance)
        return await services.preview(tenant_id, user, tried)

    found = _with_upkeep(tenant, work)
    if as_json:
        print_json(found)
        return
    if not found.total and not found.merges:
        typer.echo("Nothing would change.")
        return
    if found.merges:
        print_table({"id": "id", "content": "memory", "kept_content": "said as well by"}, found.merges)
        typer.echo(f"{as_counts({'memories': len(found.merges)})} would be merged.")
    if found.total:
        print_table({"id": "id", "content": "memory", "why": "why"}, found.fading)
        what = "archived" if found.policy.fading == "archive" else "removed"
        typer.echo(f"{as_counts({'memories': found.total})} would be {what}.")


@app.command(name="run")
def run_(
    user: OfUser,
    tenant: OfTenant = "default",
    fading: How = None,
    days: Days = None,
    importance: Importance = None,
    as_json: AsJson = False,
) -> None:
    """Merge what says the same, and let unused memories fade now. Options take the place of the policy's figures.

    Example: `anamnesis upkeep run u-1`
    """

    async def work(services: "Upkeep", tenant_id: UUID) -> "UpkeepRun":
        wanted = _with(await services.policies.of(tenant_id), fading, days, importance)
        return await services.run(tenant_id, user, wanted)

    report = _with_upkeep(tenant, work)
    if as_json:
        print_json(report)
        return
    if not report.merged_ids and not report.faded_ids:
        typer.echo("Nothing changed.")
        return
    done = "removed" if report.action == "remove" else "archived"
    merged, faded = ({"memories": len(ids)} for ids in (report.merged_ids, report.faded_ids))
    typer.echo(f"{as_counts(merged)} merged, {as_counts(faded)} {done}.")
    if report.can_be_undone:
        typer.echo(f"To undo: anamnesis upkeep undo {user} {report.id}")


@app.command()
def runs(user: OfUser, tenant: OfTenant = "default", limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the runs of a user, newest first.

    Example: `anamnesis upkeep runs u-1`
    """

    async def work(services: "Upkeep", tenant_id: UUID) -> Any:
        return await services.runs(tenant_id, user, limit=limit)

    found = _with_upkeep(tenant, work)
    if as_json:
        print_json(found)
        return
    columns = {
        "id": "id", "created_at": "when", "reason": "reason", "action": "action", "merged": "merged",
        "faded": "faded", "undone_at": "undone",
    }  # fmt: skip
    rows = [{**vars(each), "merged": len(each.merged_ids), "faded": len(each.faded_ids)} for each in found]
    print_table(columns, rows)


@app.command()
def undo(user: OfUser, run_id: RunId, tenant: OfTenant = "default") -> None:
    """Bring back everything that a run took.

    Example: `anamnesis upkeep undo u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Upkeep", tenant_id: UUID) -> None:
        await services.undo(tenant_id, user, run_id)

    _with_upkeep(tenant, work)
    typer.echo(f"Undid the run {run_id}.")


@app.command()
def restore(
    user: OfUser,
    memory_id: Annotated[UUID, typer.Argument(metavar="MEMORY", help="Id of the memory.")],
    tenant: OfTenant = "default",
) -> None:
    """Bring one archived or removed memory back.

    Example: `anamnesis upkeep restore u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Upkeep", tenant_id: UUID) -> None:
        await services.restore(tenant_id, user, memory_id)

    _with_upkeep(tenant, work)
    typer.echo(f"Restored the memory {memory_id}.")


def _with(
    stored: "UpkeepPolicy", fading: Fading | None, days: int | None, importance: float | None
) -> "UpkeepPolicy":
    """The policy with the figures that are given."""
    return replace(
        stored,
        fading=fading or stored.fading,
        fading_days=stored.fading_days if days is None else days,
        fading_importance=stored.fading_importance if importance is None else importance,
    )


def _with_upkeep(tenant: str, work: "Callable[[Upkeep, UUID], Coroutine[Any, Any, Result]]") -> Result:
    async def done(settings: Settings) -> Result:
        async with open_services_on_postgres(settings) as services:
            found = await named(Tenants(services.database), tenant)
            return await work(services.upkeep, found.id)

    return run(done)
