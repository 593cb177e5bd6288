"""`anamnesis kb`: knowledge bases and their documents."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from api.cli.documents import Report, each_once, files_of, ingest_files
from api.cli.shell import (
    FAILED,
    WRONG_USE,
    AsJson,
    OfTenant,
    Yes,
    check,
    confirm,
    fail,
    open_all_services,
    print_fields,
    print_json,
    print_table,
    run,
)
from api.cli.tenants import named
from services.engines import open_database
from services.errors import AnamnesisError
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.knowledge.base import Base
    from services.knowledge.bases import KnowledgeBases
    from services.knowledge.documents import Documents
    from services.knowledge.search import Found

app = typer.Typer(
    no_args_is_help=True, help="Manage knowledge bases and their documents.", rich_markup_mode="markdown"
)

OfBase = Annotated[str, typer.Argument(metavar="PREFIX", help="Name of the knowledge base.")]


@dataclass(frozen=True)
class _Opened:
    tenant_id: UUID
    bases: "KnowledgeBases"
    documents: "Documents"


@app.command()
def add(
    prefix: OfBase,
    description: Annotated[str, typer.Option(help="What its documents are about, in a sentence or two.")],
    keyword: Annotated[
        list[str] | None, typer.Option(help="A word typical of its subject; may be repeated.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="A question that it answers; may be repeated.")
    ] = None,
    system_prompt: Annotated[
        str, typer.Option(help="Instructions for answers from it, besides the expert's.")
    ] = "",
    handler: Annotated[str | None, typer.Option(help="Name of the strategy that answers from it.")] = None,
    tenant: OfTenant = "default",
) -> None:
    """Add a knowledge base.

    Example: `anamnesis kb add handbook --description "The handbook of our staff." --keyword leave`
    """
    from api.knowledge_schemas import BaseChangeRequest  # noqa: PLC0415 — help needs none of it
    from services.knowledge.base import NewBase  # noqa: PLC0415

    given = {"description": description, "keywords": keyword or [], "questions": question or []}
    check(BaseChangeRequest, {**given, "system_prompt": system_prompt})
    new = NewBase(prefix, description, tuple(keyword or ()), tuple(question or ()), system_prompt, handler)

    async def make(settings: Settings) -> None:
        async with _open(settings, tenant) as opened:
            await opened.bases.create(opened.tenant_id, new)

    run(make)
    typer.echo(f"Added the knowledge base {prefix}. Add documents: anamnesis kb ingest {prefix} PATH")


@app.command()
def ingest(
    prefix: OfBase,
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.")],
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="Remove documents of the base that are not among the files.")
    ] = False,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Add documents: text, Markdown, HTML, PDF, DOCX, XLSX and CSV. Unchanged files are skipped.

    A file that cannot be read is reported and the others are added. The running service indexes them; until then
    they are found by their words.

    Example: `anamnesis kb ingest handbook documents/ notes.pdf`
    """
    files = each_once(files_of(paths))
    if remove_missing and not files:
        raise typer.BadParameter("there is no file at all: every document would be removed", param_hint="PATHS")
    report = Report()

    async def take_in(settings: Settings) -> None:
        try:
            async with _open(settings, tenant) as opened:
                await ingest_files(
                    opened.documents, opened.tenant_id, prefix, files, report, remove_missing=remove_missing
                )
        except (AnamnesisError, asyncio.CancelledError):
            if report.stored:
                typer.echo(
                    f"{report.stored} of {len(files)} files are stored; run the command again for the rest.",
                    err=True,
                )
            raise

    run(take_in)
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

    run(read)
    if as_json:
        print_json(rows)
        return
    columns = {
        "prefix": "base",
        "documents": "documents",
        "chunks": "passages",
        "waiting": "not yet indexed",
        "description": "description",
    }
    if prefix is not None:
        columns = {
            "source": "document",
            "title": "title",
            "chunk_count": "passages",
            "waiting": "not yet indexed",
            "media_type": "type",
        }
    print_table(columns, rows)


@app.command()
def update(
    prefix: OfBase,
    description: Annotated[
        str | None, typer.Option(help="What its documents are about, in a sentence or two.")
    ] = None,
    keyword: Annotated[
        list[str] | None, typer.Option(help="Replaces all keywords; may be repeated. Empty for none.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="Replaces all questions; may be repeated. Empty for none.")
    ] = None,
    system_prompt: Annotated[
        str | None, typer.Option(help="Instructions for answers from it, besides the expert's. Empty for none.")
    ] = None,
    handler: Annotated[
        str | None, typer.Option(help="Name of the strategy that answers from it. Empty for the usual one.")
    ] = None,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Change the given fields of a knowledge base; everything else stays.

    Example: `anamnesis kb update handbook --keyword leave --keyword sick`
    """
    from api.knowledge_schemas import BaseChangeRequest  # noqa: PLC0415 — help needs none of it

    values = {
        "description": description,
        "keywords": None if keyword is None else [each for each in keyword if each],
        "questions": None if question is None else [each for each in question if each],
        "system_prompt": system_prompt,
    }
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if handler is not None:
        given["handler"] = handler or None
    if not given:
        fail("nothing to change; see: anamnesis kb update --help", WRONG_USE)
    change: Any = check(BaseChangeRequest, given)

    async def apply(settings: Settings) -> "Base":
        async with _open(settings, tenant) as opened:
            return await opened.bases.update(opened.tenant_id, prefix, change)

    changed = run(apply)
    if as_json:
        print_json(changed)
    else:
        print_fields(changed)


@app.command()
def search(
    prefix: OfBase,
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Passages to show at most.")] = 5,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Show the passages that an answer to a question would get, best first.

    Example: `anamnesis kb search handbook "How many days of leave do I get?"`
    """
    if not query.strip():
        fail("the query is empty", WRONG_USE)

    async def find(settings: Settings) -> "Found":
        async with open_all_services(settings) as services:
            owner = await named(Tenants(services.database), tenant)
            await services.knowledge.documents.base_id(owner.id, prefix)
            return await services.knowledge.search.search(
                owner.id, prefix, query, agent_type="hybrid_agent", limit=limit
            )

    found = run(find)
    for store in found.degraded:
        typer.echo(f"{store} did not answer; the rest was searched.", err=True)
    if as_json:
        print_json(found)
        return
    if not found.passages:
        typer.echo("Nothing was found.")
    for passage in found.passages:
        page = f", page {passage['page']}" if passage["page"] else ""
        heading = f" › {passage['heading']}" if passage["heading"] else ""
        typer.echo(f"{passage['document']}{heading}{page} ({passage['score']:.2f})\n{passage['text']}\n")


@app.command()
def remove(
    prefix: OfBase,
    document: Annotated[
        list[str] | None, typer.Option(help="Remove only this document, by its name; may be repeated.")
    ] = None,
    tenant: OfTenant = "default",
    yes: Yes = False,
) -> None:
    """Remove a knowledge base with its documents, or some of its documents.

    Example: `anamnesis kb remove handbook --document leave.md --yes`
    """
    what = ", ".join(document) if document else f"the knowledge base {prefix} with all its documents"
    confirm(f"Permanently remove {what}?", yes=yes)

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

    run(take_out)
    typer.echo(f"Removed {what}.")


@asynccontextmanager
async def _open(settings: Settings, tenant: str) -> AsyncIterator[_Opened]:
    """Knowledge bases of a tenant over the database alone; a worker updates the index."""
    from services.jobs.queue import JobQueue  # noqa: PLC0415 — help needs none of it
    from services.knowledge.bases import KnowledgeBases  # noqa: PLC0415
    from services.knowledge.documents import Documents  # noqa: PLC0415

    async with open_database(settings) as database:
        owner = await named(Tenants(database), tenant)
        jobs = JobQueue(database)
        await jobs.open()
        yield _Opened(owner.id, KnowledgeBases(database, jobs), Documents.of(settings, database, jobs))
