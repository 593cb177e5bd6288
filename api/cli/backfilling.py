"""The work of `anamnesis backfill`: several pieces at once, with a progress bar, and a report of failures."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import typer

from api.cli.shell import FAILED, progress_bar
from services.errors import AnamnesisError, DatabaseUnavailable

_AT_ONCE = 2


@dataclass(frozen=True)
class Piece:
    """A summary, visit or day that may have to be made."""

    tenant: str
    name: str
    make: Callable[[], Awaitable[bool]]
    """Make it, and return whether there was anything to do."""


@dataclass(frozen=True)
class Failure:
    """A piece that could not be made, and the reason."""

    tenant: str
    item: str
    reason: str


@dataclass
class Outcome:
    """Progress so far."""

    made: int = 0
    up_to_date: int = 0
    failed: list[Failure] = field(default_factory=list)


async def work_through(pieces: Sequence[Piece], outcome: Outcome) -> None:
    """Make all pieces; failures are recorded, and the others are made.

    Raises:
        DatabaseUnavailable: the database does not answer; what was made stays.
    """
    with progress_bar() as progress:
        bar = progress.add_task("made", total=len(pieces))
        waiting = iter(pieces)
        works = (_one_after_another(waiting, outcome, lambda: progress.advance(bar)) for _ in range(_AT_ONCE))
        for error in await asyncio.gather(*works):
            if error is not None:
                raise error


def report(outcome: Outcome, *, as_json: bool) -> None:
    """Print the outcome.

    Raises:
        Exit: with code 1, if something failed.
    """
    if as_json:
        typer.echo(json.dumps(asdict(outcome)))
    else:
        for failure in outcome.failed:
            typer.echo(f"{failure.tenant}: {failure.item} failed: {failure.reason}", err=True)
        typer.echo(f"{outcome.made} made, {outcome.up_to_date} already up to date, {len(outcome.failed)} failed.")
    if outcome.failed:
        raise typer.Exit(FAILED)


async def _one_after_another(
    waiting: Iterator[Piece], outcome: Outcome, advance: Callable[[], None]
) -> DatabaseUnavailable | None:
    """Make pieces until none is left; return the error that ended it early."""
    for piece in waiting:
        try:
            if await piece.make():
                outcome.made += 1
            else:
                outcome.up_to_date += 1
        except DatabaseUnavailable as error:
            return error
        except AnamnesisError as error:
            outcome.failed.append(Failure(piece.tenant, piece.name, error.message))
        advance()
    return None
