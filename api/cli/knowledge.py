"""`anamnesis kb`: knowledge bases and their documents."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import typer

from anamnesis_client import Anamnesis, ClientError, ServiceError
from api.cli import shell
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

    A file that cannot be read is reported and the others are added; so is what of a file is not read. The service
    indexes them; until then they are found by their words.

    Example: `anamnesis kb ingest handbook documents/ notes.pdf`
    """
    files = _each_once(_files_of(paths))
    if remove_missing and not files:
        raise typer.BadParameter("there is no file at all: every document would be removed", param_hint="PATHS")
    report: dict[str, Any] = dict.fromkeys(("created", "replaced", "unchanged", "removed"), 0)
    failed = report["failed"] = []
    left_out = report["left_out"] = []
    service.request("GET", "knowledge-bases", prefix)
    try:
        with shell.progress_bar() as progress:
            for status in progress.track(
                _ingested(service, prefix, files, failed, left_out), len(files), description="ingest"
            ):
                if status:
                    report[status] += 1
        if remove_missing:
            kept = {file.source for file in files}
            report["removed"] = _remove_documents(service, prefix, lambda source: source not in kept)
    except (ClientError, KeyboardInterrupt):
        if stored := report["created"] + report["replaced"] + report["unchanged"]:
            done = f"{stored} of {len(files)} files are stored"
            typer.echo(f"{done}; run the command again for the rest.", err=True)
        raise
    for failure in [*left_out, *failed]:
        name = "".join(character if character.isprintable() else "?" for character in failure["file"])
        typer.echo(f"{name}: {failure['reason']}", err=True)
    if as_json:
        shell.print_json(report)
    else:
        counts = {"new": report["created"], **report, "failed": len(failed)}
        shown = ("new", "replaced", "unchanged", "removed", "failed")
        typer.echo(", ".join(f"{counts[name]} {name}" for name in shown) + ".")
    if failed:
        raise typer.Exit(shell.FAILED)


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
        _remove_documents(service, prefix, lambda source: source in document)
    typer.echo(f"Removed {what}.")


_OF_THE_FILE = frozenset(
    {HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE}
)
"""Statuses that refuse one document; the service may accept others."""
_MOST_BYTES = 65 * 1024 * 1024
"""Maximum bytes of a document that the service accepts with any setting."""


@dataclass(frozen=True)
class File:
    """A file and its name in the knowledge base."""

    path: Path
    source: str


def _ingested(
    service: Anamnesis,
    prefix: str,
    files: Sequence[File],
    failed: list[dict[str, str]],
    left_out: list[dict[str, str]],
) -> Iterator[str | None]:
    """Ingest files one after the other and yield the outcome of each; None for a file that is added to `failed`.

    What is not read of a file is added to `left_out`.

    Raises:
        ServiceError: The service cannot continue; files already ingested stay.
        Unreachable: The service does not answer.
    """
    for file in files:
        status = None
        try:
            taken = service.add_document(prefix, file.source, _read(file.path))
            status = taken["status"]
            if parts := taken["document"]["left_out"]:
                left_out.append({"file": str(file.path), "reason": f"read without {'; '.join(parts)}"})
        except OSError as error:
            failed.append({"file": str(file.path), "reason": f"cannot be read: {error.strerror}"})
        except ServiceError as error:
            if error.status not in _OF_THE_FILE:
                raise
            failed.append({"file": str(file.path), "reason": error.detail.removeprefix("document: ")})
        yield status


def _remove_documents(service: Anamnesis, prefix: str, goes: Callable[[str], bool]) -> int:
    """Remove the documents of a base whose names `goes` selects; return how many."""
    gone = [each for each in service.items("knowledge-bases", prefix, "documents") if goes(each["source"])]
    for document in gone:
        service.request("DELETE", "knowledge-bases", prefix, "documents", document["id"])
    return len(gone)


def _files_of(paths: Sequence[Path]) -> Iterator[File]:
    """Yield each file once, with its name in the base: its path within the given folder."""
    for path in paths:
        if path.is_dir():
            for file in (each for each in sorted(path.rglob("*")) if each.is_file()):
                inside = file.relative_to(path)
                if not any(part.startswith(".") for part in inside.parts):
                    yield File(file, _shown(inside.as_posix()))
        elif path.exists():
            yield File(path, _shown(path.name))
        else:
            shell.fail(f"there is no file or folder {path}", shell.WRONG_USE)


def _shown(name: str) -> str:
    """Return a name as text; a name that is not UTF-8 is often Chinese, packed on Windows."""
    if name.isprintable():
        return name
    try:
        return os.fsencode(name).decode("gb18030")
    except UnicodeDecodeError:
        return name


def _each_once(files: Iterable[File]) -> list[File]:
    """Drop files that are named twice; end the command if two different ones have the same name."""
    by_source: dict[str, File] = {}
    for file in files:
        other = by_source.setdefault(file.source, file)
        if not other.path.samefile(file.path):
            reason = f"{other.path} and {file.path} would both be the document {file.source}"
            shell.fail(f"{reason}; take in a folder that holds both, or give one another name", shell.WRONG_USE)
    return list(by_source.values())


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)  # one byte more shows that it is too large
