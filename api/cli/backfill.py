"""`anamnesis backfill`: make what the service makes behind its answers, for conversations that are older."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import typer

from api.cli.backfilling import Outcome, Piece, report, work_through
from api.cli.shell import WRONG_USE, AsJson, Named, fail, settings_or_exit
from api.cli.tenants import named_or_all
from services.engines import Engines, migrate_if_owner, open_postgres
from services.errors import AnamnesisError
from services.identity.tenants import Tenant, Tenants
from services.platform.logs import configure_logs
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services

app = typer.Typer(
    no_args_is_help=True,
    help="Make what the service makes behind its answers, for older conversations.",
    rich_markup_mode="markdown",
)

_Find = Callable[["Services", Tenant], Awaitable[list[Piece]]]


@app.callback()
def backfill() -> None:
    """Make what the service makes behind its answers, for older conversations."""


@app.command()
def summaries(tenant: Named = None, as_json: AsJson = False) -> None:
    """Make the rolling summaries that are due. When it was stopped or killed, run it again: it goes on.

    Example: `anamnesis backfill summaries --tenant web-shop`
    """
    settings = settings_or_exit()
    if not settings.memory_summaries:
        fail("ANAMNESIS_MEMORY_SUMMARIES is off: there are no summaries", WRONG_USE)
    _run(settings, tenant, "summaries", _conversations_to_summarise, as_json=as_json)


@app.command()
def visits(tenant: Named = None, as_json: AsJson = False) -> None:
    """Find the visits of conversations that are older than visits. When it was stopped or killed, run it again.

    It asks no model. Example: `anamnesis backfill visits`
    """
    _run(settings_or_exit(), tenant, "conversations' visits", _conversations_to_group, as_json=as_json)


@app.command()
def daily(tenant: Named = None, as_json: AsJson = False) -> None:
    """Make the daily summaries that are missing or stale, of past days. When it was stopped, run it again.

    Older conversations need `anamnesis backfill visits` first. Example: `anamnesis backfill daily --tenant shop`
    """
    settings = settings_or_exit()
    if not settings.memory_visits:
        fail("ANAMNESIS_MEMORY_VISITS is off: there are no daily summaries", WRONG_USE)
    _run(settings, tenant, "daily summaries", _days_to_summarise, as_json=as_json)


async def _conversations_to_summarise(services: "Services", tenant: Tenant) -> list[Piece]:
    return [
        Piece(tenant.name, f"conversation {each}", partial(services.summaries.update, tenant.id, each))
        for each in await services.summaries.store.conversations(tenant.id)
    ]


async def _conversations_to_group(services: "Services", tenant: Tenant) -> list[Piece]:
    return [
        Piece(tenant.name, f"conversation {each}", partial(services.visits.find_all, tenant.id, each))
        for each in await services.visits.conversations(tenant.id)
    ]


async def _days_to_summarise(services: "Services", tenant: Tenant) -> list[Piece]:
    return [
        Piece(tenant.name, f"{day} of user {owner.user_id}", partial(services.daily.make, owner, day, timezone))
        for owner, day, timezone in await services.daily.past_days(tenant.id, datetime.now(UTC))
    ]


def _run(settings: Settings, tenant: str | None, what: str, find: _Find, *, as_json: bool) -> None:
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")  # a line for each would cut the bar to pieces
    outcome = Outcome()
    try:
        asyncio.run(_backfill(settings, tenant, find, outcome))
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        fail(f"stopped; {outcome.made} {what} were made and stay, the same command makes the others")
    report(outcome, as_json=as_json)


async def _backfill(settings: Settings, tenant: str | None, find: _Find, outcome: Outcome) -> None:
    async with _opened(settings) as services:
        tenants = await named_or_all(Tenants(services.database), tenant)
        found = [piece for each in tenants for piece in await find(services, each)]
        await work_through(found, outcome)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator["Services"]:
    from services.bootstrap import open_services  # noqa: PLC0415 — help needs none of it

    async with open_postgres(settings) as (database_url, owner_url):
        # Nothing here asks Milvus, which is first connected to when it is asked.
        engines = Engines(database_url, owner_url, settings.milvus_uri or "")
        await migrate_if_owner(engines)
        async with open_services(settings, engines) as services:
            yield services
