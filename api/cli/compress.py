"""`anamnesis compress`: merge a user's duplicate memories now, preview it, or undo a run."""

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import (
    WRONG_USE,
    AsJson,
    OfExpert,
    OfTenant,
    OfUser,
    as_counts,
    fail,
    open_services_on_postgres,
    quiet_settings,
)
from api.cli.tenants import named
from services.errors import AnamnesisError
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services
    from services.memory.blocks import Owner


def compress(
    user: OfUser,
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would change.")] = False,
    undo: Annotated[UUID | None, typer.Option(help="Undo this run instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Merge a user's duplicate memories. An interrupted run changes nothing.

    With a language model configured it writes the merged memories; otherwise the newest of each group is kept.

    Example: `anamnesis compress u-1 --dry-run`
    """
    if dry_run and undo is not None:
        fail("--undo cannot be combined with --dry-run", WRONG_USE)
    settings = quiet_settings()
    try:
        told = asyncio.run(_compress(settings, tenant, user, expert, dry_run=dry_run, run_id=undo))
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        fail("stopped; nothing was changed")
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False))
    elif undo is not None:
        typer.echo(f"Restored {as_counts({'memories': told['restored']})}.")
    else:
        _show(user, told)


async def _compress(
    settings: Settings, tenant: str, user: str, expert: str, *, dry_run: bool, run_id: UUID | None
) -> dict[str, Any]:
    async with open_services_on_postgres(settings) as services:
        found = await named(Tenants(services.database), tenant)
        owner = await services.memory.core.owner(found.id, user, expert)
        if run_id is None:
            return await _run(services, owner, dry_run=dry_run)
        restored = await services.compression.undo.undo(found.id, owner.user_id, run_id)
        return {"run": str(run_id), "restored": restored}


async def _run(services: "Services", owner: "Owner", *, dry_run: bool) -> dict[str, Any]:
    compression = services.compression
    run = await compression.request(owner, dry_run=dry_run, job=False)
    with _progress() as progress:
        bar = progress.add_task("groups", total=None)
        report = await compression.carry_out(
            owner.tenant_id,
            run.id,
            on_step=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if report is None:
        fail("the user was erased, or another process has taken the run over")
    return {"run": str(run.id), "dry_run": dry_run, **asdict(report)}


def _show(user: str, told: dict[str, Any]) -> None:
    if not told["superseded"]:
        typer.echo(f"Nothing to merge among {as_counts({'memories': told['episodes_before']})}.")
    else:
        how = "without a language model" if told["by"] == "rules" else "by the language model"
        merged = f"{as_counts({'memories': told['superseded']})} merged into {told['consolidated']} {how}"
        would = "would become" if told["dry_run"] else "became"
        typer.echo(
            f"{as_counts({'memories': told['episodes_before']})} {would} {told['episodes_after']}: {merged}."
        )
    for failure in told["failures"]:
        typer.echo(f"{as_counts({'memories': failure['episodes']})} not merged: {failure['reason']}", err=True)
    if told["left_for_later"]:
        typer.echo(f"{as_counts({'groups': told['left_for_later']})} left for the next run.")
    if not told["dry_run"] and told["superseded"]:
        typer.echo(f"To undo: anamnesis compress {user} --undo {told['run']}")


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
