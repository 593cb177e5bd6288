"""Working through what is to be made for older conversations: some at once, with a bar, to the end."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import FAILED
from services.errors import AnamnesisError, DatabaseUnavailable

_AT_ONCE = 2


@dataclass(frozen=True)
class Piece:
    """Something that may have to be made."""

    tenant: str
    name: str
    make: Callable[[], Awaitable[bool]]
    """Makes it and says whether there was anything to do."""


@dataclass(frozen=True)
class Failure:
    """What was not made, and why."""

    tenant: str
    item: str
    reason: str


@dataclass
class Outcome:
    """How far it has come."""

    made: int = 0
    up_to_date: int = 0
    failed: list[Failure] = field(default_factory=list)


async def work_through(pieces: Sequence[Piece], outcome: Outcome) -> None:
    """Make them all; what fails is noted, and the others are made.

    Raises:
        DatabaseUnavailable: the database does not answer; what was made stays.
    """
    with _progress() as progress:
        bar = progress.add_task("made", total=len(pieces))
        waiting = iter(pieces)
        works = (_one_after_another(waiting, outcome, lambda: progress.advance(bar)) for _ in range(_AT_ONCE))
        for error in await asyncio.gather(*works):
            if error is not None:
                raise error


def report(outcome: Outcome, *, as_json: bool) -> None:
    """Say what was made.

    Raises:
        Exit: with code 1, where something failed.
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
    """Make what waits until nothing does; return why it ended before."""
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


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
