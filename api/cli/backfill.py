"""`anamnesis backfill`: summaries, visits and daily summaries for existing conversations."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from api.cli.backfilling import Outcome, Piece, report, work_through
from api.cli.shell import WRONG_USE, AsJson, Named, command_group, fail, open_services_on_postgres, quiet_settings
from api.cli.tenants import named_or_all
from services.errors import AnamnesisError
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services

app = command_group("Generate summaries, visits and daily summaries for existing conversations.")

_Find = Callable[["Services", Tenant], Awaitable[list[Piece]]]


@app.callback()
def backfill() -> None:
    """Generate summaries, visits and daily summaries for existing conversations."""


@app.command()
def summaries(tenant: Named = None, as_json: AsJson = False) -> None:
    """Generate the rolling summaries that are due. Safe to re-run after an interruption.

    Example: `anamnesis backfill summaries --tenant web-shop`
    """
    settings = quiet_settings()
    if not settings.memory_summaries:
        fail("ANAMNESIS_MEMORY_SUMMARIES is off: there are no summaries", WRONG_USE)
    _run(settings, tenant, "summaries", _conversations_to_summarise, as_json=as_json)


@app.command()
def visits(tenant: Named = None, as_json: AsJson = False) -> None:
    """Find the visits of existing conversations, without a language model. Safe to re-run after an interruption.

    Example: `anamnesis backfill visits`
    """
    _run(quiet_settings(), tenant, "conversations' visits", _conversations_to_group, as_json=as_json)


@app.command()
def daily(tenant: Named = None, as_json: AsJson = False) -> None:
    """Generate missing and stale daily summaries of past days. Safe to re-run after an interruption.

    Conversations without visits need `anamnesis backfill visits` first.

    Example: `anamnesis backfill daily --tenant shop`
    """
    settings = quiet_settings()
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
    outcome = Outcome()
    try:
        asyncio.run(_backfill(settings, tenant, find, outcome))
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        fail(f"stopped; {outcome.made} {what} are done, run the command again for the rest")
    report(outcome, as_json=as_json)


async def _backfill(settings: Settings, tenant: str | None, find: _Find, outcome: Outcome) -> None:
    async with open_services_on_postgres(settings) as services:
        tenants = await named_or_all(Tenants(services.database), tenant)
        found = [piece for each in tenants for piece in await find(services, each)]
        await work_through(found, outcome)
