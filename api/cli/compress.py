"""`anamnesis compress`: compress a user's memory now, see what it would do, or take a run back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import WRONG_USE, AsJson, fail, settings_or_exit
from services.engines import Engines, migrate_if_owner, open_postgres
from services.errors import AnamnesisError
from services.identity.tenants import Tenants
from services.platform.logs import configure_logs
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services
    from services.memory.blocks import Owner


def compress(
    user: Annotated[str, typer.Argument(help="The caller's own name for the user.")],
    tenant: Annotated[str, typer.Option(help="Name or id of the user's tenant.")] = "default",
    expert: Annotated[str, typer.Option(help="Name of the expert who remembers.")] = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would be done.")] = False,
    undo: Annotated[UUID | None, typer.Option(help="Take this run back instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Merge a user's episodes that say the same, and retire faded ones. Broken off, it has changed nothing.

    Example: `anamnesis compress u-1 --dry-run`
    """
    if dry_run and undo is not None:
        fail("--undo changes something: it cannot be tried with --dry-run", WRONG_USE)
    settings = settings_or_exit()
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")  # a line for each would cut the bar to pieces
    try:
        told = asyncio.run(_compress(settings, tenant, user, expert, dry_run=dry_run, run_id=undo))
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        fail("stopped; nothing was changed")
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False))
    elif undo is not None:
        typer.echo(f"{told['restored']} episodes are back.")
    else:
        _show(told)


async def _compress(
    settings: Settings, tenant: str, user: str, expert: str, *, dry_run: bool, run_id: UUID | None
) -> dict[str, Any]:
    async with _opened(settings) as services:
        if (found := await Tenants(services.database).by_name_or_id(tenant)) is None:
            fail(f"there is no tenant named {tenant}")
        owner = await services.memory.core.owner(found.id, user, expert)
        if run_id is None:
            return await _run(services, owner, dry_run=dry_run)
        restored = await services.compressing.compression.undoing.undo(found.id, owner.user_id, run_id)
        return {"run": str(run_id), "restored": restored}


async def _run(services: "Services", owner: "Owner", *, dry_run: bool) -> dict[str, Any]:
    compression = services.compressing.compression
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


def _show(told: dict[str, Any]) -> None:
    would = "would become" if told["dry_run"] else "became"
    typer.echo(
        f"{told['episodes_before']} episodes {would} {told['episodes_after']}: {told['superseded']} merged into "
        f"{told['consolidated']} by {told['by']} ({len(told['dropped'])} dropped), {told['retired']} retired."
    )
    for failure in told["failures"]:
        typer.echo(f"{failure['episodes']} stay as they are: {failure['reason']}", err=True)
    if told["left_for_later"]:
        typer.echo(f"{told['left_for_later']} groups are left for the next run.")
    if not told["dry_run"] and told["superseded"] + told["retired"]:
        typer.echo(f"To take it back: --undo {told['run']}")


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator["Services"]:
    from services.bootstrap import open_services  # noqa: PLC0415 — help needs none of it

    async with open_postgres(settings) as (database_url, owner_url):
        # Nothing here asks Milvus: the service's own job brings the index up to date.
        engines = Engines(database_url, owner_url, settings.milvus_uri or "")
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            yield services


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
