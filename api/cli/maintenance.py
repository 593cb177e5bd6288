"""`anamnesis maintenance`: the policy by which unused memories fade, its preview, runs and their undoing."""

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
from services.maintenance.policy import Fading, Handling
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.maintenance.fading import FadingPreview, FadingRun
    from services.maintenance.policy import MaintenancePolicy
    from services.maintenance.wiring import Maintenance

app = typer.Typer(
    no_args_is_help=True,
    help="Let unused memories fade by a policy: preview, run, report and undo.",
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
    """Show a tenant's policy of maintenance; with options, change what they name.

    Example: `anamnesis maintenance policy --fading archive --days 180`
    """

    async def work(services: "Maintenance", tenant_id: UUID) -> "MaintenancePolicy":
        stored = await services.policies.of(tenant_id)
        wanted = replace(_with(stored, fading, days, importance), proposals=proposals or stored.proposals)
        if wanted != stored:
            await services.policies.set(tenant_id, wanted)
        return wanted

    found = _with_maintenance(tenant, work)
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
    """List exactly what a run would take now, and why. Options take the place of the policy's figures.

    Example: `anamnesis maintenance preview u-1 --fading archive --days 60`
    """

    async def work(services: "Maintenance", tenant_id: UUID) -> "FadingPreview":
        tried = _with(await services.policies.of(tenant_id), fading, days, importance)
        return await services.fading.preview(tenant_id, user, tried)

    found = _with_maintenance(tenant, work)
    if as_json:
        print_json(found)
        return
    if not found.total:
        typer.echo("Nothing would fade.")
        return
    print_table({"id": "id", "content": "memory", "why": "why"}, found.items)
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
    """Let a user's unused memories fade now. Options take the place of the policy's figures.

    Example: `anamnesis maintenance run u-1`
    """

    async def work(services: "Maintenance", tenant_id: UUID) -> "FadingRun":
        wanted = _with(await services.policies.of(tenant_id), fading, days, importance)
        return await services.fading.run(tenant_id, user, wanted)

    report = _with_maintenance(tenant, work)
    if as_json:
        print_json(report)
        return
    if not report.episode_ids:
        typer.echo("Nothing faded.")
        return
    done = "archived" if report.action == "archive" else "removed"
    typer.echo(f"{as_counts({'memories': len(report.episode_ids)})} {done}.")
    if report.can_be_undone:
        typer.echo(f"To undo: anamnesis maintenance undo {user} {report.id}")


@app.command()
def runs(user: OfUser, tenant: OfTenant = "default", limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the runs of a user, newest first.

    Example: `anamnesis maintenance runs u-1`
    """

    async def work(services: "Maintenance", tenant_id: UUID) -> Any:
        return await services.fading.runs(tenant_id, user, limit=limit)

    found = _with_maintenance(tenant, work)
    if as_json:
        print_json(found)
        return
    columns = {
        "id": "id", "created_at": "when", "reason": "reason", "action": "action", "count": "memories",
        "undone_at": "undone",
    }  # fmt: skip
    print_table(columns, [{**vars(each), "count": len(each.episode_ids)} for each in found])


@app.command()
def undo(user: OfUser, run_id: RunId, tenant: OfTenant = "default") -> None:
    """Bring back everything that a run took.

    Example: `anamnesis maintenance undo u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Maintenance", tenant_id: UUID) -> None:
        await services.fading.undo(tenant_id, user, run_id)

    _with_maintenance(tenant, work)
    typer.echo(f"Undid the run {run_id}.")


@app.command()
def restore(
    user: OfUser,
    memory_id: Annotated[UUID, typer.Argument(metavar="MEMORY", help="Id of the memory.")],
    tenant: OfTenant = "default",
) -> None:
    """Bring one archived or removed memory back.

    Example: `anamnesis maintenance restore u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Maintenance", tenant_id: UUID) -> None:
        await services.fading.restore(tenant_id, user, memory_id)

    _with_maintenance(tenant, work)
    typer.echo(f"Restored the memory {memory_id}.")


def _with(
    stored: "MaintenancePolicy", fading: Fading | None, days: int | None, importance: float | None
) -> "MaintenancePolicy":
    """The policy with the figures that are given."""
    return replace(
        stored,
        fading=fading or stored.fading,
        fading_days=stored.fading_days if days is None else days,
        fading_importance=stored.fading_importance if importance is None else importance,
    )


def _with_maintenance(tenant: str, work: "Callable[[Maintenance, UUID], Coroutine[Any, Any, Result]]") -> Result:
    async def done(settings: Settings) -> Result:
        async with open_services_on_postgres(settings) as services:
            found = await named(Tenants(services.database), tenant)
            return await work(services.maintenance, found.id)

    return run(done)
