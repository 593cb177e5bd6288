"""`anamnesis backfill`: summaries, visits and daily summaries for existing conversations, several at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import typer

from api.cli import shell
from api.cli.tenants import named_or_all
from services.errors import AnamnesisError, DatabaseUnavailable
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services

_AT_ONCE = 2

app = shell.command_group("Generate summaries, visits and daily summaries for existing conversations.")


@dataclass(frozen=True)
class Piece:
    """A summary, visit or day that may have to be made."""

    tenant: str
    name: str
    make: Callable[[], Awaitable[bool]]
    """Make it, and return whether there was anything to do."""


@dataclass
class Outcome:
    """Progress so far."""

    made: int = 0
    up_to_date: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)
    """Of each piece that could not be made its `tenant`, its name (`item`) and the `reason`."""


_Find = Callable[["Services", Tenant], Awaitable[list[Piece]]]


@app.command()
def summaries(tenant: shell.Named = None, as_json: shell.AsJson = False) -> None:
    """Generate the rolling summaries that are due. Safe to re-run after an interruption.

    Example: `anamnesis backfill summaries --tenant web-shop`
    """
    settings = shell.quiet_settings()
    if not settings.memory_summaries:
        shell.fail("ANAMNESIS_MEMORY_SUMMARIES is off: there are no summaries", shell.WRONG_USE)
    _run(settings, tenant, "summaries", _conversations_to_summarise, as_json=as_json)


@app.command()
def visits(tenant: shell.Named = None, as_json: shell.AsJson = False) -> None:
    """Find the visits of existing conversations, without a language model. Safe to re-run after an interruption.

    Example: `anamnesis backfill visits`
    """
    _run(shell.quiet_settings(), tenant, "conversations' visits", _conversations_to_group, as_json=as_json)


@app.command()
def daily(tenant: shell.Named = None, as_json: shell.AsJson = False) -> None:
    """Generate missing and stale daily summaries of past days. Safe to re-run after an interruption.

    Conversations without visits need `anamnesis backfill visits` first.

    Example: `anamnesis backfill daily --tenant shop`
    """
    settings = shell.quiet_settings()
    if not settings.memory_visits:
        shell.fail("ANAMNESIS_MEMORY_VISITS is off: there are no daily summaries", shell.WRONG_USE)
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
    """Make all pieces that are found, and print the outcome; failures are recorded, and the others are made."""
    outcome = Outcome()
    try:
        asyncio.run(_backfill(settings, tenant, find, outcome))
    except AnamnesisError as error:
        shell.fail(error.message)
    except KeyboardInterrupt:
        shell.fail(f"stopped; {outcome.made} {what} are done, run the command again for the rest")
    if as_json:
        shell.print_json(outcome)
    else:
        for failure in outcome.failed:
            typer.echo("{tenant}: {item} failed: {reason}".format(**failure), err=True)
        typer.echo(f"{outcome.made} made, {outcome.up_to_date} already up to date, {len(outcome.failed)} failed.")
    if outcome.failed:
        raise typer.Exit(shell.FAILED)


async def _backfill(settings: Settings, tenant: str | None, find: _Find, outcome: Outcome) -> None:
    async with shell.open_services_on_postgres(settings) as services:
        tenants = await named_or_all(Tenants(services.database), tenant)
        pieces = [piece for each in tenants for piece in await find(services, each)]
        with shell.progress_bar() as progress:
            bar = progress.add_task("made", total=len(pieces))
            waiting = iter(pieces)
            works = (_make(waiting, outcome, lambda: progress.advance(bar)) for _ in range(_AT_ONCE))
            ended = await asyncio.gather(*works, return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error


async def _make(waiting: Iterator[Piece], outcome: Outcome, advance: Callable[[], None]) -> None:
    """Make pieces until none is left, or the database does not answer; what was made stays."""
    for piece in waiting:
        try:
            if await piece.make():
                outcome.made += 1
            else:
                outcome.up_to_date += 1
        except DatabaseUnavailable:
            raise
        except AnamnesisError as error:
            outcome.failed.append({"tenant": piece.tenant, "item": piece.name, "reason": error.message})
        advance()
