"""`anamnesis import` and `anamnesis export`: conversations and memories as JSON Lines, or from another product."""

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from anamnesis_client import Anamnesis, ImportReport
from api.cli import shell
from api.cli.service import AtUrl, WithKey, connected, over_http
from services.transfer.vendors.conversion import Conversion, Vendor, VendorExport
from services.validation import RULE, is_id

_KEPT = "What was imported so far is kept; run the command again for the rest."
_CHUNK = 64 * 1024


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines in UTF-8, or with --from a vendor's archive; - is the standard input.",
            allow_dash=True,
        ),
    ],
    vendor: Annotated[Vendor | None, typer.Option("--from", help="Whose export it is.")] = None,
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
    as_json: shell.AsJson = False,
    url: AtUrl = None,
    key: WithKey = None,
) -> None:
    """Import messages or an export. Valid lines are stored, invalid ones reported, known ones skipped.

    With --from, reads the export of another product: its conversations along their active path, without system
    messages and tools.

    Example: `anamnesis import conversations.jsonl`

    Example: `anamnesis import --from chatgpt export.zip --dry-run`
    """
    if vendor is None:
        if user or expert or dry_run:
            shell.fail(
                "--user, --expert and --dry-run need --from; lines name their users themselves", shell.WRONG_USE
            )
        with _opened(file) as source, connected(url, key, after_failure=_KEPT) as service:
            brought = service.import_lines(_chunks(source))
        _show(brought, as_json=as_json)
        failed = brought.refused
    else:
        if user is not None and not is_id(user):
            shell.fail(f"--user {RULE}", shell.WRONG_USE)
        if str(file) == "-":
            shell.fail("--from reads a file, not the standard input", shell.WRONG_USE)
        export = VendorExport(vendor, file, user=user, expert=expert)
        failed = _import_export(export, url, key, dry_run=dry_run, as_json=as_json)
    if failed:
        raise typer.Exit(shell.FAILED)


def _import_export(export: VendorExport, url: str | None, key: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Import a vendor's export, or only count its contents; return the number of records and lines with errors."""
    read, report = Conversion(), None
    lines = _converted(export, export.archive.size(), read)
    if dry_run:
        deque(lines, 0)
    else:
        with connected(url, key, after_failure=_KEPT) as service:
            report = service.import_lines(lines)
    _show_export(read, report, export.archive.other_files(), as_json=as_json)
    return read.unread + (report.refused if report else 0)


@over_http
def export(
    service: Anamnesis,
    user: shell.OfUser,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; without it, the standard output.")
    ] = None,
    space: shell.InSpace = None,
) -> None:
    """Export everything stored for a user, or for one space, as JSON Lines that `anamnesis import` accepts.

    Example: `anamnesis export u-1 -o u-1.jsonl`
    """
    with shell.one_line_errors("The export is incomplete."):
        count = _export_to(service, user, space, output)
    if output is not None:
        typer.echo(f"{count} lines are in {output}.", err=True)


def _opened(file: Path) -> BinaryIO:
    if str(file) == "-":
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        shell.fail(f"{file} cannot be read: {error.strerror}", shell.WRONG_USE)


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    with shell.progress_bar(in_bytes=True) as progress:
        bar = progress.add_task("import", total=_size(source))
        while chunk := source.read(_CHUNK):
            yield chunk
            progress.advance(bar, len(chunk))


def _size(source: BinaryIO) -> int | None:
    """Return the size of a file in bytes; None for a pipe."""
    try:
        return os.fstat(source.fileno()).st_size or None
    except OSError:  # it is no file on disk
        return None


def _show(report: ImportReport, *, as_json: bool) -> None:
    for error in report.errors:
        typer.echo(f"line {error.line}: {error.reason}", err=True)
    if report.refused > len(report.errors):
        typer.echo(f"… and {report.refused - len(report.errors)} more", err=True)
    if as_json:
        shell.print_json(report)
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
    with shell.progress_bar() as progress:
        bar = progress.add_task("export", total=None)
        for count, line in enumerate(chain([first], lines), 1):
            target.write(f"{line}\n".encode())
            progress.update(bar, completed=count)
    return count


_MOST_NAMES = 10


def _converted(export: VendorExport, size: int, read: Conversion) -> Iterator[bytes]:
    with shell.progress_bar(in_bytes=True) as progress:
        bar = progress.add_task("import", total=size)
        yield from export.lines(read, lambda count: progress.advance(bar, count))


def _show_export(read: Conversion, report: ImportReport | None, others: Sequence[str], *, as_json: bool) -> None:
    errors = list(read.errors)
    if report:
        errors += [f"{read.place_of(error.line)}: {error.reason}" for error in report.errors]
    for error in errors:
        typer.echo(error, err=True)
    counts = {"conversations": read.conversations, "messages": read.messages, "memories": read.memories}
    if as_json:
        found = {**counts, "left_out": read.left_out, "other_files": others, "unread": read.unread}
        found["errors"] = errors
        lines = {name: value for name, value in asdict(report).items() if name != "errors"} if report else None
        shell.print_json({**found, "lines": lines})
        return
    typer.echo(f"{shell.as_counts(counts)} in the export.")
    if read.left_out:
        typer.echo(
            "Left out: " + ", ".join(f"{count} {kind}" for kind, count in read.left_out.most_common()) + "."
        )
    if others:
        more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
        typer.echo(f"Files of the archive that were not read: {', '.join(others[:_MOST_NAMES])}{more}.")
    if read.unread:
        typer.echo(f"{read.unread} records could not be read.")
    if report:
        typer.echo(f"Lines: {report.imported} imported, {report.skipped} skipped, {report.refused} refused.")
    else:
        typer.echo("Nothing was imported (--dry-run).")
