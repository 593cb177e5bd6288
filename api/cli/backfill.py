"""`anamnesis backfill`: make what the service makes behind its answers, for conversations that are older."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import FAILED, WRONG_USE, AsJson, Named, fail, settings_or_exit
from api.cli.tenants import named_or_all
from services.engines import Engines, migrate_if_owner, open_postgres
from services.errors import AnamnesisError, DatabaseUnavailable
from services.identity.tenants import Tenant, Tenants
from services.platform.logs import configure_logs
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.summaries.rolling import RollingSummaries

app = typer.Typer(
    no_args_is_help=True,
    help="Make what the service makes behind its answers, for older conversations.",
    rich_markup_mode="markdown",
)

_AT_ONCE = 2


@app.callback()
def backfill() -> None:
    """Make what the service makes behind its answers, for older conversations."""


@dataclass(frozen=True)
class Failure:
    """A conversation that has no new summary, and why."""

    tenant: str
    conversation_id: str
    reason: str


@dataclass
class Outcome:
    """How far it has come."""

    made: int = 0
    up_to_date: int = 0
    failed: list[Failure] = field(default_factory=list)


@app.command()
def summaries(tenant: Named = None, as_json: AsJson = False) -> None:
    """Make the rolling summaries that are due. When it was stopped or killed, run it again: it goes on.

    Example: `anamnesis backfill summaries --tenant web-shop`
    """
    settings = settings_or_exit()
    if not settings.memory_summaries:
        fail("ANAMNESIS_MEMORY_SUMMARIES is off: there are no summaries", WRONG_USE)
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")  # a line for each summary would cut the bar to pieces
    outcome = Outcome()
    try:
        asyncio.run(_backfill(settings, tenant, outcome))
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        fail(f"stopped; {outcome.made} summaries were made and stay, the same command makes the others")
    if as_json:
        typer.echo(json.dumps(asdict(outcome)))
    else:
        _show(outcome)
    if outcome.failed:
        raise typer.Exit(FAILED)


async def _backfill(settings: Settings, tenant: str | None, outcome: Outcome) -> None:
    from services.bootstrap import open_services  # noqa: PLC0415 — help needs none of it

    async with open_postgres(settings) as (database_url, owner_url):
        # Nothing here asks Milvus, which is first connected to when it is asked.
        engines = Engines(database_url, owner_url, settings.milvus_uri or "")
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            store = services.summaries.store
            tenants = await named_or_all(Tenants(services.database), tenant)
            found = [(owner, each) for owner in tenants for each in await store.conversations(owner.id)]
            with _progress() as progress:
                bar = progress.add_task("conversations", total=len(found))
                waiting, advance = iter(found), partial(progress.advance, bar)
                works = (
                    _one_after_another(services.summaries, waiting, outcome, advance) for _ in range(_AT_ONCE)
                )
                for error in await asyncio.gather(*works):
                    if error is not None:
                        raise error


async def _one_after_another(
    rolling: "RollingSummaries",
    waiting: Iterator[tuple[Tenant, UUID]],
    outcome: Outcome,
    advance: Callable[[], None],
) -> DatabaseUnavailable | None:
    """Bring summaries up to date until none waits; return why it ended before."""
    for owner, conversation_id in waiting:
        try:
            if await rolling.update(owner.id, conversation_id):
                outcome.made += 1
            else:
                outcome.up_to_date += 1
        except DatabaseUnavailable as error:
            return error
        except AnamnesisError as error:
            outcome.failed.append(Failure(owner.name, str(conversation_id), error.message))
        advance()
    return None


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


def _show(outcome: Outcome) -> None:
    for failure in outcome.failed:
        typer.echo(f"{failure.tenant}: conversation {failure.conversation_id} failed: {failure.reason}", err=True)
    typer.echo(f"{outcome.made} made, {outcome.up_to_date} already up to date, {len(outcome.failed)} failed.")
