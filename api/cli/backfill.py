"""`anamnesis backfill`: summaries, visits and daily summaries for existing conversations, several at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli import shell
from api.cli.access import named_or_all
from services.errors import AnamnesisError, DatabaseUnavailable
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services

_AT_ONCE = 2

What = Literal["summaries", "visits", "daily"]
Piece = tuple[dict[str, str], Callable[[], Awaitable[bool]]]
"""One piece of work: its `tenant` and name (`item`) for the outcome, and a function that does it and returns
whether there was anything to do."""


@dataclass
class Outcome:
    """Progress so far."""

    made: int = 0
    up_to_date: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)
    """Failed pieces: `tenant`, name (`item`) and `reason` of each."""


def backfill(
    what: Annotated[What, typer.Argument(help="Rolling summaries, visits, or summaries of past days.")],
    tenant: shell.Named = None,
    as_json: shell.AsJson = False,
) -> None:
    """Generate what existing conversations lack. Safe to re-run after an interruption.

    Visits are found without a language model; daily summaries need them first. Missing and stale days are made.

    Example: `anamnesis backfill summaries --tenant web-shop`
    """
    settings = shell.quiet_settings()
    needed = {"summaries": "memory_summaries", "daily": "memory_visits"}.get(what)
    if needed and not getattr(settings, needed):
        shell.fail(f"ANAMNESIS_{needed.upper()} is off: there are no {what} to make", shell.WRONG_USE)
    outcome = Outcome()
    try:
        asyncio.run(_backfill(settings, tenant, what, outcome))
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


async def _backfill(settings: Settings, tenant: str | None, what: What, outcome: Outcome) -> None:
    async with shell.open_services_on_postgres(settings) as services:
        tenants = await named_or_all(Tenants(services.database), tenant)
        pieces = [piece for each in tenants for piece in await _pieces(services, each, what)]
        with shell.progress_bar() as progress:
            bar = progress.add_task("made", total=len(pieces))
            waiting = iter(pieces)
            works = (_make(waiting, outcome, lambda: progress.advance(bar)) for _ in range(_AT_ONCE))
            ended = await asyncio.gather(*works, return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error


async def _pieces(services: "Services", tenant: Tenant, what: What) -> list[Piece]:
    def piece(item: str, make: Callable[..., Awaitable[bool]], *arguments: Any) -> Piece:
        return {"tenant": tenant.name, "item": item}, partial(make, *arguments)

    if what == "daily":
        days = await services.daily.past_days(tenant.id, datetime.now(UTC))
        return [piece(f"{each[1]} of user {each[0].user_id}", services.daily.make, *each) for each in days]
    if what == "visits":
        grouped = await services.visits.conversations(tenant.id)
        return [piece(f"conversation {each}", services.visits.find_all, tenant.id, each) for each in grouped]
    summarised = await services.summaries.store.conversations(tenant.id)
    return [piece(f"conversation {each}", services.summaries.update, tenant.id, each) for each in summarised]


async def _make(waiting: Iterator[Piece], outcome: Outcome, advance: Callable[[], None]) -> None:
    """Make pieces until none is left or the database does not answer; finished pieces stay."""
    for named, make in waiting:
        try:
            if await make():
                outcome.made += 1
            else:
                outcome.up_to_date += 1
        except DatabaseUnavailable:
            raise
        except AnamnesisError as error:
            outcome.failed.append({**named, "reason": error.message})
        advance()
