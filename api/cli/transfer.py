"""`anamnesis import` and `anamnesis export`: conversations and memories as JSON Lines."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.shell import FAILED, WRONG_USE, AsJson, InSpace, OfTenant, fail, quiet_settings
from api.cli.tenants import named
from services.engines import open_database
from services.errors import AnamnesisError
from services.identity.tenants import Tenants
from services.platform.settings import Settings
from services.transfer.report import ImportReport

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
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Import messages or an export. Valid lines are stored, invalid ones reported, known ones skipped.

    With --from, reads the export of another product: its conversations along their active path, without system
    messages and tools.

    Example: `anamnesis import conversations.jsonl --tenant web-shop`

    Example: `anamnesis import --from chatgpt export.zip --dry-run`
    """
    if vendor is not None:
        from api.cli.vendor_import import import_vendor  # noqa: PLC0415 — help needs none of it

        import_vendor(file, vendor, user, expert, tenant, dry_run=dry_run, as_json=as_json)
        return
    if user or expert or dry_run:
        fail("--user, --expert and --dry-run need --from; lines name their users themselves", WRONG_USE)
    settings = quiet_settings()
    try:
        with _opened(file) as source:
            report = asyncio.run(import_chunks(settings, tenant, _chunks(source)))
    except AnamnesisError as error:
        fail(f"{error.message} Lines stored so far are kept; run the command again for the rest.")
    except KeyboardInterrupt:
        fail("stopped; lines stored so far are kept, run the command again for the rest")
    _show(report, as_json=as_json)
    if report.refused:
        raise typer.Exit(FAILED)


def export(
    user: Annotated[str, typer.Argument(help="The caller's own name for the user.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; without it, the standard output.")
    ] = None,
    tenant: OfTenant = "default",
    space: InSpace = None,
) -> None:
    """Export everything stored for a user, or for one space, as JSON Lines that `anamnesis import` accepts.

    Example: `anamnesis export u-1 -o u-1.jsonl`
    """
    settings = quiet_settings()
    try:
        count = asyncio.run(_export_to(settings, tenant, user, space, output))
    except AnamnesisError as error:
        fail(error.message)
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


async def import_chunks(settings: Settings, tenant: str, chunks: AsyncIterator[bytes]) -> ImportReport:
    """Import lines into the database of the settings.

    Raises:
        AnamnesisError: the database does not answer, or there is no such tenant.
    """
    from services.jobs.queue import JobQueue  # noqa: PLC0415
    from services.transfer.wiring import make_importer  # noqa: PLC0415 — help needs none of it

    async with open_database(settings) as database:
        owner = await named(Tenants(database), tenant)
        jobs = JobQueue(database)
        await jobs.open()
        return await make_importer(settings, database, jobs).run(owner.id, chunks)


async def _chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    with _progress(TextColumn("import"), BarColumn(), DownloadColumn(), TimeRemainingColumn()) as progress:
        bar = progress.add_task("", total=_size(source))
        while chunk := await asyncio.to_thread(source.read, _CHUNK):
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
        typer.echo(json.dumps(asdict(report), ensure_ascii=False))
    else:
        typer.echo(f"{report.imported} imported, {report.skipped} skipped, {report.refused} refused.")


async def _export_to(settings: Settings, tenant: str, user: str, space: str | None, output: Path | None) -> int:
    if output is None:
        return await _export(settings, tenant, user, space, sys.stdout.buffer)
    unfinished = output.with_name(f"{output.name}.part")
    try:
        with unfinished.open("wb") as target:
            count = await _export(settings, tenant, user, space, target)
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


async def _export(settings: Settings, tenant: str, user: str, space: str | None, target: BinaryIO) -> int:
    from services.transfer.export_store import ExportStore  # noqa: PLC0415 — help needs none of it
    from services.transfer.exporter import Exporter  # noqa: PLC0415

    count = 0
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        owner = await named(Tenants(database), tenant)
        exporter = Exporter(ExportStore(database))
        found = await exporter.user(owner.id, user)
        if space is not None:
            await exporter.check_space(owner.id, found, space)
        progress = stack.enter_context(_progress(TextColumn("export"), BarColumn(), MofNCompleteColumn()))
        bar = progress.add_task("", total=found.messages)
        async for lines in exporter.lines(owner.id, found, space):
            target.write("".join(lines).encode())
            count += len(lines)
            progress.update(bar, completed=min(count, found.messages))
    return count


def _progress(
    *columns: TextColumn | BarColumn | DownloadColumn | MofNCompleteColumn | TimeRemainingColumn,
) -> Progress:
    return Progress(*columns, console=Console(stderr=True))
