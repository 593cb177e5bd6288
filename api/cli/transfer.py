"""`anamnesis import` and `anamnesis export`: conversations and memories as JSON Lines."""

import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from anamnesis_client import Anamnesis, ImportReport
from api.cli.service import AtUrl, WithKey, connected, over_http
from api.cli.shell import FAILED, WRONG_USE, AsJson, InSpace, OfUser, fail, print_json, progress_bar
from api.cli.vendor_import import import_vendor

_KEPT = "Lines stored so far are kept; run the command again for the rest."
_CHUNK = 64 * 1024


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines in UTF-8, or with --from a vendor's archive; - is the standard input.",
            allow_dash=True,
        ),
    ],
    vendor: Annotated[
        str | None,
        typer.Option("--from", help="Whose export it is: chatgpt, claude, openwebui, librechat or mem0."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="With --from: whose history it becomes; unset = the users that it names, else me."),
    ] = None,
    expert: Annotated[
        str | None, typer.Option(help="With --from: the expert of the imported conversations.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --from: count what would be imported, and import nothing.")
    ] = False,
    as_json: AsJson = False,
    url: AtUrl = None,
    key: WithKey = None,
) -> None:
    """Import messages or an export. Valid lines are stored, invalid ones reported, known ones skipped.

    With --from, reads the export of another product: its conversations along their active path, without system
    messages and tools.

    Example: `anamnesis import conversations.jsonl`

    Example: `anamnesis import --from chatgpt export.zip --dry-run`
    """
    if vendor is not None:
        import_vendor(file, vendor, user, expert, url, key, dry_run=dry_run, as_json=as_json)
        return
    if user or expert or dry_run:
        fail("--user, --expert and --dry-run need --from; lines name their users themselves", WRONG_USE)
    with _opened(file) as source, connected(url, key, after_failure=_KEPT) as service:
        report = service.import_lines(_chunks(source))
    _show(report, as_json=as_json)
    if report.refused:
        raise typer.Exit(FAILED)


@over_http
def export(
    service: Anamnesis,
    user: OfUser,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; without it, the standard output.")
    ] = None,
    space: InSpace = None,
) -> None:
    """Export everything stored for a user, or for one space, as JSON Lines that `anamnesis import` accepts.

    Example: `anamnesis export u-1 -o u-1.jsonl`
    """
    try:
        count = _export_to(service, user, space, output)
    except OSError as error:
        fail(f"{output or 'the standard output'} cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        fail("stopped; the export is incomplete")
    if output is not None:
        typer.echo(f"{count} lines are in {output}.", err=True)


def _opened(file: Path) -> BinaryIO:
    if str(file) == "-":
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}", WRONG_USE)


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    with progress_bar(in_bytes=True) as progress:
        bar = progress.add_task("import", total=_size(source))
        while chunk := source.read(_CHUNK):
            yield chunk
            progress.advance(bar, len(chunk))


def _size(source: BinaryIO) -> int | None:
    """Return the bytes of a file; None for a pipe."""
    try:
        return os.fstat(source.fileno()).st_size or None
    except OSError:  # it is no file of the system's
        return None


def _show(report: ImportReport, *, as_json: bool) -> None:
    for error in report.errors:
        typer.echo(f"line {error.line}: {error.reason}", err=True)
    if report.refused > len(report.errors):
        typer.echo(f"… and {report.refused - len(report.errors)} more", err=True)
    if as_json:
        print_json(report)
    else:
        typer.echo(f"{report.imported} imported, {report.skipped} skipped, {report.refused} refused.")


def _export_to(service: Anamnesis, user: str, space: str | None, output: Path | None) -> int:
    if output is None:
        return _export(service, user, space, sys.stdout.buffer)
    unfinished = output.with_name(f"{output.name}.part")
    try:
        with unfinished.open("wb") as target:
            count = _export(service, user, space, target)
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _export(service: Anamnesis, user: str, space: str | None, target: BinaryIO) -> int:
    lines = service.export(user=user, space=space)
    first = next(lines, None)  # what can be refused is refused before anything is shown
    if first is None:
        return 0
    with progress_bar() as progress:
        bar = progress.add_task("export", total=None)
        for count, line in enumerate(chain([first], lines), 1):
            target.write(f"{line}\n".encode())
            progress.update(bar, completed=count)
    return count
