"""`anamnesis import --from`: import a user's history from another product."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from anamnesis_client import ImportReport
from api.cli.service import connected
from api.cli.shell import FAILED, WRONG_USE, as_counts, fail, print_json, progress_bar, told
from services.errors import InvalidInput
from services.names import RULE, is_id
from services.transfer.vendors.conversion import Conversion, VendorExport, vendor_named

_MOST_NAMES = 10
_KEPT = "What was imported so far is kept; run the command again for the rest."


def import_vendor(
    file: Path,
    vendor: str,
    user: str | None,
    expert: str | None,
    url: str | None,
    key: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import a vendor's export, or count its contents; an error ends the program with one line."""
    if user is not None and not is_id(user):
        fail(f"--user {RULE}", WRONG_USE)
    if str(file) == "-":
        fail("--from reads a file, not the standard input", WRONG_USE)
    read, report = Conversion(), None
    try:
        export = VendorExport(vendor_named(vendor), file, user=user, expert=expert)
        lines = _lines(export, export.size(), read)
        if dry_run:
            for _ in lines:
                pass
    except InvalidInput as error:
        fail(told(error), WRONG_USE)
    except KeyboardInterrupt:
        fail("stopped.")
    if not dry_run:
        with connected(url, key, after_failure=_KEPT) as service:
            report = service.import_lines(lines)
    _show(read, report, export.other_files(), as_json=as_json)
    if read.unread or (report and report.refused):
        raise typer.Exit(FAILED)


def _lines(export: VendorExport, size: int, read: Conversion) -> Iterator[bytes]:
    with progress_bar(in_bytes=True) as progress:
        bar = progress.add_task("import", total=size)
        yield from export.lines(read, lambda count: progress.advance(bar, count))


def _show(read: Conversion, report: ImportReport | None, others: Sequence[str], *, as_json: bool) -> None:
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
        print_json({**found, "lines": lines})
        return
    typer.echo(f"{as_counts(counts)} in the export.")
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
