"""`anamnesis kb`: knowledge bases and their documents."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anamnesis_client import Anamnesis, ClientError
from api.cli import shell
from api.cli.documents import Report, each_once, files_of, ingest_files, remove_documents
from api.cli.service import over_http

app = shell.command_group("Manage knowledge bases and their documents.")

OfBase = Annotated[str, typer.Argument(metavar="PREFIX", help="Name of the knowledge base.")]


@app.command()
@over_http
def add(
    service: Anamnesis,
    prefix: OfBase,
    description: Annotated[str, typer.Option(help="What its documents are about, in a sentence or two.")],
    keyword: Annotated[
        list[str] | None, typer.Option(help="A word typical of its subject; may be repeated.")
    ] = None,
    system_prompt: Annotated[
        str, typer.Option(help="Instructions for answers from it, besides the expert's.")
    ] = "",
    handler: Annotated[str | None, typer.Option(help="Name of the strategy that answers from it.")] = None,
) -> None:
    """Add a knowledge base.

    Example: `anamnesis kb add handbook --description "The handbook of our staff." --keyword leave`
    """
    new = {
        "prefix": prefix, "description": description, "keywords": keyword or [],
        "system_prompt": system_prompt, "handler": handler,
    }  # fmt: skip
    service.request("POST", "knowledge-bases", json=new)
    typer.echo(f"Added the knowledge base {prefix}. Add documents: anamnesis kb ingest {prefix} PATH")


@app.command()
@over_http
def ingest(
    service: Anamnesis,
    prefix: OfBase,
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.")],
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="Remove documents of the base that are not among the files.")
    ] = False,
    as_json: shell.AsJson = False,
) -> None:
    """Add documents: text, Markdown, HTML, PDF, DOCX, XLSX and CSV. Unchanged files are skipped.

    A file that cannot be read is reported and the others are added. The service indexes them; until then they are
    found by their words.

    Example: `anamnesis kb ingest handbook documents/ notes.pdf`
    """
    files = each_once(files_of(paths))
    if remove_missing and not files:
        raise typer.BadParameter("there is no file at all: every document would be removed", param_hint="PATHS")
    report = Report()

    try:
        ingest_files(service, prefix, files, report, remove_missing=remove_missing)
    except (ClientError, KeyboardInterrupt):
        if report.stored:
            done = f"{report.stored} of {len(files)} files are stored"
            typer.echo(f"{done}; run the command again for the rest.", err=True)
        raise
    for failure in report.failed:
        name = "".join(character if character.isprintable() else "?" for character in failure["file"])
        typer.echo(f"{name}: {failure['reason']}", err=True)
    if as_json:
        shell.print_json(report)
    else:
        typer.echo(
            f"{report.created} new, {report.replaced} replaced, {report.unchanged} unchanged, "
            f"{report.removed} removed, {len(report.failed)} failed."
        )
    if report.failed:
        raise typer.Exit(shell.FAILED)


@app.command(name="list")
@over_http
def list_(
    service: Anamnesis,
    prefix: Annotated[
        str | None, typer.Argument(metavar="PREFIX", help="List the documents of this base instead.")
    ] = None,
    as_json: shell.AsJson = False,
) -> None:
    """List the knowledge bases, or the documents of one.

    Example: `anamnesis kb list handbook --json`
    """
    path = ("knowledge-bases",) if prefix is None else ("knowledge-bases", prefix, "documents")
    rows = list(service.items(*path))
    if as_json:
        shell.print_json(rows)
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
    shell.print_table(columns, rows)


@app.command()
@over_http
def update(
    service: Anamnesis,
    prefix: OfBase,
    description: Annotated[
        str | None, typer.Option(help="What its documents are about, in a sentence or two.")
    ] = None,
    keyword: Annotated[
        list[str] | None, typer.Option(help="Replaces all keywords; may be repeated. Empty for none.")
    ] = None,
    system_prompt: Annotated[
        str | None, typer.Option(help="Instructions for answers from it, besides the expert's. Empty for none.")
    ] = None,
    handler: Annotated[
        str | None, typer.Option(help="Name of the strategy that answers from it. Empty for the usual one.")
    ] = None,
    as_json: shell.AsJson = False,
) -> None:
    """Change the given fields of a knowledge base; everything else stays.

    Example: `anamnesis kb update handbook --keyword leave --keyword sick`
    """
    change: dict[str, Any] = shell.given(
        description=description,
        keywords=None if keyword is None else [each for each in keyword if each],
        system_prompt=system_prompt,
    )
    if handler is not None:
        change["handler"] = handler or None
    if not change:
        shell.fail("nothing to change; see: anamnesis kb update --help", shell.WRONG_USE)
    shell.print_one(service.request("PATCH", "knowledge-bases", prefix, json=change), as_json=as_json)


@app.command()
@over_http
def search(
    service: Anamnesis,
    prefix: OfBase,
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Passages to show at most.")] = 5,
    as_json: shell.AsJson = False,
) -> None:
    """Show the passages that an answer to a question would get, best first.

    Example: `anamnesis kb search handbook "How many days of leave do I get?"`
    """
    if not query.strip():
        shell.fail("the query is empty", shell.WRONG_USE)

    asked = {"query": query, "top_k": limit}
    found = service.request("POST", "knowledge-bases", prefix, "search", json=asked)
    for store in found["degraded"]:
        typer.echo(f"{store} did not answer; the rest was searched.", err=True)
    if as_json:
        shell.print_json(found)
        return
    if not found["items"]:
        typer.echo("Nothing was found.")
    for passage in found["items"]:
        page = f", page {passage['page']}" if passage["page"] else ""
        heading = f" › {passage['heading']}" if passage["heading"] else ""
        typer.echo(f"{passage['document']}{heading}{page} ({passage['score']:.2f})\n{passage['text']}\n")


@app.command()
@over_http
def remove(
    service: Anamnesis,
    prefix: OfBase,
    document: Annotated[
        list[str] | None, typer.Option(help="Remove only this document, by its name; may be repeated.")
    ] = None,
    yes: shell.Yes = False,
) -> None:
    """Remove a knowledge base with its documents, or some of its documents.

    Example: `anamnesis kb remove handbook --document leave.md --yes`
    """
    what = ", ".join(document) if document else f"the knowledge base {prefix} with all its documents"
    shell.confirm(f"Permanently remove {what}?", yes=yes)

    if not document:
        service.request("DELETE", "knowledge-bases", prefix)
    else:
        there = {each["source"] for each in service.items("knowledge-bases", prefix, "documents")}
        if missing := set(document) - there:
            shell.fail(f"there is no document {', '.join(sorted(missing))} in {prefix}; nothing was removed")
        remove_documents(service, prefix, lambda source: source in document)
    typer.echo(f"Removed {what}.")
