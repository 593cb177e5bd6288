"""`anamnesis kb`: knowledge bases and their documents."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from api.cli.shell import FAILED, WRONG_USE, AsJson, fail, settings_or_exit, told
from api.cli.tenants import named
from services.engines import open_database
from services.errors import AnamnesisError, CallerError, InvalidInput
from services.identity.tenants import Tenants
from services.platform.logs import configure_logs
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.knowledge.bases import KnowledgeBases
    from services.knowledge.documents import Documents

app = typer.Typer(
    no_args_is_help=True, help="Make knowledge bases and take documents in.", rich_markup_mode="markdown"
)

OfTenant = Annotated[str, typer.Option("--tenant", help="Name or id of the base's tenant.")]
OfBase = Annotated[str, typer.Argument(metavar="PREFIX", help="Name of the knowledge base.")]


@dataclass(frozen=True)
class _Opened:
    tenant_id: UUID
    bases: "KnowledgeBases"
    documents: "Documents"


@dataclass(frozen=True)
class _File:
    path: Path
    source: str


@dataclass
class _Report:
    """What became of the files."""

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)


@app.command()
def add(
    prefix: OfBase,
    description: Annotated[str, typer.Option(help="What its documents are about, in a sentence or two.")],
    keyword: Annotated[
        list[str] | None, typer.Option(help="A word that only its subject has; may be repeated.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="A question that it answers; may be repeated.")
    ] = None,
    system_prompt: Annotated[str, typer.Option(help="What the model is told when it answers from it.")] = "",
    handler: Annotated[str | None, typer.Option(help="Name of the strategy that answers from it.")] = None,
    tenant: OfTenant = "default",
) -> None:
    """Make a knowledge base.

    Example: `anamnesis kb add handbook --description "The handbook of our staff." --keyword leave`
    """
    from services.knowledge.base import NewBase  # noqa: PLC0415 — help needs none of it

    _check(description=description, keywords=keyword or [], questions=question or [], system_prompt=system_prompt)
    new = NewBase(prefix, description, tuple(keyword or ()), tuple(question or ()), system_prompt, handler)

    async def make(settings: Settings) -> None:
        async with _open(settings, tenant) as opened:
            await opened.bases.create(opened.tenant_id, new)

    _run(make)
    typer.echo(f"The knowledge base {prefix} is there. Take documents in: anamnesis kb ingest {prefix} PATH")


@app.command()
def ingest(
    prefix: OfBase,
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders with all that is in them.")],
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="Remove documents of the base that are not among the files.")
    ] = False,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Take documents in: text, Markdown, HTML, PDF and DOCX. What has not changed is left as it is.

    A file that cannot be read is named, and the others are taken in. The running service indexes them; without one
    they are found by their words until it runs.

    Example: `anamnesis kb ingest handbook documents/ notes.pdf`
    """
    files = _each_once(_files(paths))
    if remove_missing and not files:
        raise typer.BadParameter("there is no file at all: every document would be removed", param_hint="PATHS")
    report = _Report()

    async def take_in(settings: Settings) -> None:
        async with _open(settings, tenant) as opened:
            await _ingest(opened, prefix, files, report, remove_missing=remove_missing)

    _run(take_in, " What was taken in stays; the same command takes in the rest.")
    for failure in report.failed:
        name = "".join(character if character.isprintable() else "?" for character in failure["file"])
        typer.echo(f"{name}: {failure['reason']}", err=True)
    if as_json:
        typer.echo(json.dumps(asdict(report), ensure_ascii=False))
    else:
        typer.echo(
            f"{report.created} new, {report.replaced} replaced, {report.unchanged} unchanged, "
            f"{report.removed} removed, {len(report.failed)} failed."
        )
    if report.failed:
        raise typer.Exit(FAILED)


@app.command(name="list")
def list_(
    prefix: Annotated[
        str | None, typer.Argument(metavar="PREFIX", help="List the documents of this base instead.")
    ] = None,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """List the knowledge bases of a tenant, or the documents of one.

    Example: `anamnesis kb list handbook --json`
    """
    rows: list[dict[str, Any]] = []

    async def read(settings: Settings) -> None:
        async with _open(settings, tenant) as opened:
            if prefix is None:
                bases = await opened.bases.page(opened.tenant_id, after=None, limit=10_000)
                rows.extend(
                    {name: value for name, value in asdict(base).items() if name != "id"} for base in bases
                )
                return
            base_id = await opened.documents.base_id(opened.tenant_id, prefix)
            after: str | None = None
            while page := await opened.documents.page(opened.tenant_id, base_id, after=after, limit=200):
                rows.extend(asdict(document) for document in page)
                after = page[-1].source

    _run(read)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, default=_as_json))
        return
    columns = ("prefix", "documents", "chunks", "waiting", "description")
    if prefix is not None:
        columns = ("source", "title", "chunk_count", "waiting", "media_type")
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(str(row[name])) for name in columns))
    Console().print(table)


def _as_json(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


@app.command()
def remove(
    prefix: OfBase,
    document: Annotated[
        list[str] | None, typer.Option(help="Remove only this document, by its name; may be repeated.")
    ] = None,
    tenant: OfTenant = "default",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a knowledge base with its documents, or some of its documents.

    Example: `anamnesis kb remove handbook --document leave.md --yes`
    """
    what = ", ".join(document) if document else f"the knowledge base {prefix} with all of its documents"
    if not yes and not typer.confirm(f"Remove {what}, for good?", err=True):
        raise typer.Exit(FAILED)

    async def take_out(settings: Settings) -> None:
        async with _open(settings, tenant) as opened:
            if not document:
                await opened.bases.delete(opened.tenant_id, prefix)
                return
            base_id = await opened.documents.base_id(opened.tenant_id, prefix)
            missing = set(document) - await opened.documents.sources(opened.tenant_id, base_id)
            if missing:
                fail(f"there is no document {', '.join(sorted(missing))} in {prefix}; nothing was removed")
            await opened.documents.remove(opened.tenant_id, base_id, document)

    _run(take_out)
    typer.echo("Removed.")


@asynccontextmanager
async def _open(settings: Settings, tenant: str) -> AsyncIterator[_Opened]:
    """Knowledge bases of a tenant over the database alone: who runs the jobs keeps the index."""
    from services.jobs.queue import JobQueue  # noqa: PLC0415 — help needs none of it
    from services.knowledge.bases import KnowledgeBases  # noqa: PLC0415
    from services.knowledge.documents import Documents  # noqa: PLC0415

    async with open_database(settings) as database:
        owner = await named(Tenants(database), tenant)
        jobs = JobQueue(database)
        await jobs.open()
        yield _Opened(owner.id, KnowledgeBases(database, jobs), Documents.of(settings, database, jobs))


async def _ingest(
    opened: _Opened, prefix: str, files: Sequence[_File], report: _Report, *, remove_missing: bool
) -> None:
    documents = opened.documents
    base_id = await documents.base_id(opened.tenant_id, prefix)
    columns = (TextColumn("ingest"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(files))
        for file in files:
            try:
                data = await asyncio.to_thread(_read, file.path, documents.most_bytes)
                taken = await documents.ingest(opened.tenant_id, base_id, file.source, data)
            except OSError as error:
                report.failed.append({"file": str(file.path), "reason": f"cannot be read: {error.strerror}"})
            except CallerError as error:
                report.failed.append({"file": str(file.path), "reason": error.message})
            else:
                setattr(report, taken.status, getattr(report, taken.status) + 1)
            progress.advance(bar)
    if remove_missing:
        gone = await documents.sources(opened.tenant_id, base_id) - {file.source for file in files}
        report.removed = await documents.remove(opened.tenant_id, base_id, sorted(gone))


def _read(path: Path, most_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most_bytes + 1)  # one more says that it is too large


def _files(paths: Sequence[Path]) -> Iterator[_File]:
    """Each file once, with its name in the base: its path from the folder that was given."""
    for path in paths:
        if path.is_dir():
            for file in (each for each in sorted(path.rglob("*")) if each.is_file()):
                inside = file.relative_to(path)
                if not any(part.startswith(".") for part in inside.parts):
                    yield _File(file, inside.as_posix())
        elif path.exists():
            yield _File(path, path.name)
        else:
            fail(f"there is no file or folder {path}", WRONG_USE)


def _each_once(files: Iterable[_File]) -> list[_File]:
    by_source: dict[str, _File] = {}
    for file in files:
        other = by_source.setdefault(file.source, file)
        if not other.path.samefile(file.path):
            reason = f"{other.path} and {file.path} would both be the document {file.source}"
            fail(f"{reason}; take in a folder that holds both, or give one another name", WRONG_USE)
    return list(by_source.values())


def _check(**fields: Any) -> None:
    """Hold what is given to the limits that requests have."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 — help needs none of it

    from api.knowledge_schemas import BaseChangeRequest  # noqa: PLC0415
    from api.problems import invalid_fields  # noqa: PLC0415

    try:
        TypeAdapter(BaseChangeRequest).validate_python(fields)
    except ValidationError as error:
        fail(invalid_fields(error.errors()).detail, WRONG_USE)


def _run(work: Callable[[Settings], Coroutine[Any, Any, None]], after_failure: str = "") -> None:
    settings = settings_or_exit()
    if settings.log_level == "info":
        configure_logs(settings.log_format, "warning")  # a line of the log would stand in the midst of the output
    try:
        asyncio.run(work(settings))
    except AnamnesisError as error:
        fail(f"{told(error)}{after_failure}", WRONG_USE if isinstance(error, InvalidInput) else FAILED)
    except KeyboardInterrupt:
        fail(f"stopped.{after_failure}")
