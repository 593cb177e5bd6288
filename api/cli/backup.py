"""`anamnesis backup` and `anamnesis restore`: everything stored, in one file."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from api.cli import shell
from api.cli.stores import rebuild_indexes
from services.backup.archive import Archive, Manifest
from services.backup.snapshot import write_backup
from services.engines import direct_url, open_postgres
from services.platform.migrate import role_of
from services.platform.settings import Settings

_COUNTED = ("users", "conversations", "messages", "episodes", "knowledge_bases", "kb_documents")


def backup(
    target: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER", help="New file, or a folder for one named by the time.")
    ],
    as_json: shell.AsJson = False,
) -> None:
    """Write everything stored, as of one moment, into one compressed file. The service may be running.

    Example: `anamnesis backup backups/`
    """
    settings = shell.quiet_settings()
    file = target / f"anamnesis-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip" if target.is_dir() else target
    with _postgres(settings) as (database_url, _), shell.progress_bar() as progress:
        bar = progress.add_task("backup", total=None)
        manifest = write_backup(
            direct_url(settings) or database_url,
            file,
            lambda name, total: progress.update(bar, description=name, total=total, advance=1),
        )
    size = file.stat().st_size
    if as_json:
        shell.print_json({"file": str(file), "bytes": size, **_summary(manifest)})
    else:
        typer.echo(f"{file} ({size / 1e6:.1f} MB) holds {shell.as_counts(_rows(manifest))}.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `anamnesis backup` wrote.")],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace what is stored now. Without it, the target must be empty."),
    ] = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> None:
    """Restore a backup, all of it or nothing, and rebuild the Milvus index. The service must not be running.

    The file is checked before anything is written.

    Example: `anamnesis restore backups/anamnesis-20260301-040000.zip`
    """
    settings = shell.quiet_settings()
    with shell.one_line_errors("Nothing was changed."):
        manifest = _restore(settings, file, replace=replace, yes=yes)
    with shell.one_line_errors("Everything is restored, but the index is not rebuilt. Run: anamnesis reindex"):
        indexed = asyncio.run(_rebuild(settings))
    if as_json:
        shell.print_json({**_summary(manifest), "indexed": indexed})
        return
    typer.echo(f"Restored the backup of {manifest.made_at}: {shell.as_counts(_rows(manifest))}.")
    typer.echo(f"Indexed {shell.as_counts(indexed)}.")


def _restore(settings: Settings, file: Path, *, replace: bool, yes: bool) -> Manifest:
    from services.backup.restore import Target, restore  # noqa: PLC0415 — a sixth of a second

    with Archive.open(file) as archive:
        manifest = archive.manifest
        rows = sum(table.rows for table in manifest.tables)
        with shell.progress_bar() as progress:
            checked = progress.add_task("check", total=rows)
            archive.verify(lambda more: progress.advance(checked, more))
        if replace:
            shell.confirm(f"Permanently replace everything with the backup of {manifest.made_at}?", yes=yes)
        with _postgres(settings) as (database_url, owner_url), shell.progress_bar() as progress:
            if owner_url is None:
                shell.fail(
                    "set ANAMNESIS_MIGRATION_DATABASE_URL to the address of the tables' owner", shell.WRONG_USE
                )
            restored = progress.add_task("restore", total=rows)
            restore(
                Target(owner_url, role_of(database_url)),
                archive,
                replace=replace,
                on_rows=lambda more: progress.advance(restored, more),
            )
    return manifest


async def _rebuild(settings: Settings) -> dict[str, int]:
    # A fifth of a second.
    from services.backup.restore import users_without_their_words  # noqa: PLC0415

    async with shell.open_all_services(settings) as services:
        if lost := await users_without_their_words(services.database):
            typer.echo(
                f"The words of {', '.join(lost)} cannot be read: their keys were renewed after this backup, when "
                "something of theirs was deleted for good. What they say from now on is kept as usual.",
                err=True,
            )
        return await rebuild_indexes(services)


@contextmanager
def _postgres(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """Return PostgreSQL's addresses. Runs outside an event loop, so that Ctrl-C ends the work at once."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        database_url, owner_url = runner.run(stack.enter_async_context(open_postgres(settings)))
        try:
            yield database_url, owner_url
        finally:
            runner.run(stack.aclose())


def _rows(manifest: Manifest) -> dict[str, int]:
    rows = manifest.rows_of(*_COUNTED)
    return {**rows, "documents": rows.pop("kb_documents")}


def _summary(manifest: Manifest) -> dict[str, object]:
    about = {"made_at": manifest.made_at, "schema": manifest.revision, "service": manifest.service}
    return {**about, "rows": {table.name: table.rows for table in manifest.tables}}
