"""Shared parts of commands: the Typer application, errors in one line, settings, stores, and tables."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from typer.core import TyperGroup

from services.conversations.values import space_name
from services.engines import Engines, direct_url, migrate_if_owner, open_engines, open_postgres
from services.errors import AnamnesisError, ConfigurationError, InvalidInput, Unavailable
from services.platform.logs import configure_logs
from services.platform.proxies import prepare_proxies
from services.platform.settings import Settings, load_settings
from services.platform.settings_reference import unknown_variables

if TYPE_CHECKING:
    from services.bootstrap import Services

FAILED = 1
WRONG_USE = 2

_LOOKS, _BETWEEN_LOOKS_S = 40, 0.5

Result = TypeVar("Result")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Named = Annotated[str | None, typer.Option("--tenant", help="Name or id of a tenant.")]
OfTenant = Annotated[str, typer.Option("--tenant", help="Name or id of the tenant.")]
OfUser = Annotated[str, typer.Argument(metavar="USER", help="The caller's name for the user.")]


def _space(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return space_name(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


InSpace = Annotated[str | None, typer.Option("--space", help="Name of a space of the user.", callback=_space)]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        with one_line_errors():
            return super().invoke(ctx)


def make_shell() -> typer.Typer:
    """Make the application that commands are added to; any command's error ends the program with one line."""
    shell = typer.Typer(
        cls=_Commands,
        name="anamnesis",
        help="A self-hosted conversational agent service that remembers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    shell.callback()(_anamnesis)
    return shell


def command_group(meaning: str) -> typer.Typer:
    """Make a group of commands; `meaning` is its help."""
    return typer.Typer(no_args_is_help=True, help=meaning, rich_markup_mode="markdown")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"anamnesis {metadata.version('anamnesis-agent')}")
        raise typer.Exit


def read_settings(**overrides: Any) -> Settings:
    """Read the settings; a wrong setting ends the program with one line."""
    try:
        settings = load_settings(**{name: value for name, value in overrides.items() if value is not None})
    except ConfigurationError as error:
        fail(error.message, WRONG_USE)
    configure_logs(settings.log_format, settings.log_level)
    for line in unknown_variables():
        typer.echo(f"anamnesis: warning: {line}", err=True)
    return settings


def quiet_settings() -> Settings:
    """Read the settings for a command whose output log lines would disturb: only warnings are logged."""
    settings = read_settings()
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")
    return settings


def run(work: Callable[[Settings], Coroutine[Any, Any, Result]]) -> Result:
    """Run a command's work, which takes the settings, and return its result."""
    return asyncio.run(work(quiet_settings()))


def open_services_on(settings: Settings, engines: Engines) -> AbstractAsyncContextManager["Services"]:
    """Open all services on stores that are already open."""
    from services.bootstrap import open_services  # noqa: PLC0415 — half a second, and most commands need none of it

    return open_services(settings, engines)


@asynccontextmanager
async def open_services_on_postgres(settings: Settings) -> AsyncIterator["Services"]:
    """Open all services for a command that does not need Milvus: an embedded one is not started."""
    async with open_postgres(settings) as (database_url, owner_url):
        # The connection to Milvus is made on first use.
        engines = Engines(database_url, owner_url, settings.milvus_uri or "", direct_url(settings))
        await migrate_if_owner(engines)
        async with open_services_on(settings, engines) as services:
            yield services


@asynccontextmanager
async def open_all_services(settings: Settings) -> AsyncIterator["Services"]:
    """Open all services on all stores; embedded stores are started, unless they run already."""
    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services_on(settings, engines) as services:
            if settings.milvus_uri is None:
                await wait_for_milvus(services)
            yield services


async def wait_for_milvus(services: "Services") -> None:
    """Wait some seconds for a newly started embedded Milvus; if it does not answer, whatever needs it says so."""
    for _ in range(_LOOKS):
        try:
            await services.milvus.ping()
            return
        except Unavailable:
            await asyncio.sleep(_BETWEEN_LOOKS_S)


def progress_bar(*, in_bytes: bool = False) -> Progress:
    """Return a bar for each task on standard error, counted in pieces or in bytes."""
    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation; any answer but yes ends the program."""
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(FAILED)


def print_json(value: Any) -> None:
    """Print a value, which may contain ids, times and dataclasses, as one line of JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, default=_as_json))


def print_table(columns: Mapping[str, str], rows: Sequence[Any]) -> None:
    """Print rows as a table.

    Args:
        columns: Heading of each column, by the name of the field that it shows.
        rows: Dataclasses or mappings.
    """
    table = Table(box=None, pad_edge=False)
    for name, heading in columns.items():
        table.add_column(heading, no_wrap=name == "id")
    for row in rows:
        values = asdict(row) if is_dataclass(row) and not isinstance(row, type) else row
        table.add_row(*(escape(as_text(values[name], name)) for name in columns))
    Console().print(table)


def print_one(value: Mapping[str, Any]) -> None:
    """Print the fields of a record, one per line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, field in value.items():
        table.add_row(name, escape(as_text(field, name)))
    Console().print(table)


def as_text(value: Any, name: str = "") -> str:
    """Format a value for people: times to the minute, lists separated by commas, nothing for None.

    Args:
        value: Anything that JSON can hold, or a moment.
        name: Name of its field; if it ends in `_at`, a text is a moment.
    """
    if value is None:
        return ""
    if isinstance(value, str) and f"_{name}".endswith("_at"):
        value = datetime.fromisoformat(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M}"
    if isinstance(value, list):
        return ", ".join(as_text(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {as_text(each)}" for name, each in value.items())
    return str(value)


def as_counts(counts: Mapping[str, int]) -> str:
    """Format counts in words, leaving out zeros: `1 conversation, 12 messages`."""
    words = [f"{count} {_as_noun(kind, count)}" for kind, count in counts.items() if count]
    return ", ".join(words) or "nothing"


def _as_noun(kind: str, count: int) -> str:
    """Return the name of a kind in the singular or plural, as the count requires."""
    words = kind.replace("_", " ")
    if count != 1:
        return words
    return f"{words.removesuffix('ies')}y" if words.endswith("ies") else words.removesuffix("s")


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End the program with one line on standard error."""
    typer.echo(f"anamnesis: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def one_line_errors(after_failure: str = "") -> Iterator[None]:
    """End the program with one line if the block fails or is interrupted.

    Args:
        after_failure: Sentence after the reason, such as what to do next.
    """
    try:
        yield
    except AnamnesisError as error:
        code = WRONG_USE if isinstance(error, InvalidInput) else FAILED
        fail(then(told(error), after_failure), code)
    except OSError as error:
        if isinstance(
            error, ConnectionError | TimeoutError
        ):  # from a defect, or because the reader of a pipe has gone
            raise
        fail(then(f"{error.filename or 'the output'}: {error.strerror}", after_failure))
    except KeyboardInterrupt:
        fail(then("stopped", after_failure))


def then(reason: str, after_failure: str) -> str:
    """Return a reason, with the next sentence if there is one."""
    return f"{reason.removesuffix('.')}. {after_failure}" if after_failure else reason


def told(error: AnamnesisError) -> str:
    """Return an error's message, with the name of the wrong field."""
    return f"{error.field}: {error.message}" if isinstance(error, InvalidInput) else error.message


def _anamnesis(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """A self-hosted conversational agent service that remembers."""
    try:
        prepare_proxies()
    except ConfigurationError as error:
        fail(error.message, WRONG_USE)


def _as_json(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
