"""`anamnesis backup` and `anamnesis restore`: everything stored, in one file."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import shell
from api.cli.stores import rebuild_indexes
from services.backlog import note_backup
from services.backup.archive import Archive, Manifest
from services.backup.snapshot import write_backup
from services.engines import direct_url, open_postgres
from services.platform.migrate import role_of
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.backup.undone import UndoneErasures

_COUNTED = ("users", "conversations", "messages", "episodes", "knowledge_bases", "kb_documents")


def backup(
    target: Annotated[
        str, typer.Argument(metavar="FILE|FOLDER", help="New file, or a folder for one named by the time.")
    ],
    as_json: shell.AsJson = False,
) -> None:
    """Write everything stored, as of one moment, into one compressed file. The service may be running.

    Example: `anamnesis backup backups/`
    """
    settings = shell.quiet_settings()
    file = Path(target)
    if target.endswith("/") or file.is_dir():
        file.mkdir(parents=True, exist_ok=True)
        file /= f"anamnesis-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip"
    with _postgres(settings) as (database_url, _), shell.progress_bar() as progress:
        bar = progress.add_task("backup", total=None)
        manifest = write_backup(
            direct_url(settings) or database_url,
            file,
            lambda name, total: progress.update(bar, description=name, total=total, advance=1),
        )
    _note_made(settings)
    size = file.stat().st_size
    if as_json:
        shell.print_json({"file": str(file), "bytes": size, **_summary(manifest)})
    else:
        typer.echo(f"{file} ({size / 1e6:.1f} MB) holds {shell.as_counts(_rows(manifest))}.")


def _note_made(settings: Settings) -> None:
    try:
        note_backup(settings.data_dir)
    except OSError as error:
        why = (
            f"The metrics will not know of this backup: {settings.data_dir} cannot be written ({error.strerror})."
        )
        typer.echo(why, err=True)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `anamnesis backup` wrote.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is stored now. Without it, the target must be empty.")
    ] = False,
    repeats: Annotated[
        bool | None,
        typer.Option(
            "--repeat-erasures/--undo-erasures",
            help="Whether to erase again what was erased since the backup; unset = ask.",
        ),
    ] = None,
    index_later: Annotated[
        bool, typer.Option("--index-later", help="Let the service make the index while it already answers.")
    ] = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> None:
    """Restore a backup, all of it or nothing, and rebuild the Milvus index. The service must not be running.

    The file is checked before anything is written. With --replace the users whose erasures it undoes are named.

    Example: `anamnesis restore backups/anamnesis-20260301-040000.zip`
    """
    settings = shell.quiet_settings()
    with shell.one_line_errors("Nothing was changed."):
        manifest, undone = _restore(settings, file, replace=replace, yes=yes, repeats=repeats)
    repeated = 0
    if undone is not None:
        with shell.one_line_errors(
            "Everything is restored, but not every erasure that is named above is repeated."
        ):
            repeated = asyncio.run(_repeat(settings, undone))
    with shell.one_line_errors("Everything is restored, but the index is not rebuilt. Run: anamnesis reindex"):
        indexed = asyncio.run(_rebuild(settings, later=index_later))
    if as_json:
        counts = {"to_index" if index_later else "indexed": indexed}
        shell.print_json({**_summary(manifest), **counts, "erased_again": repeated})
        return
    typer.echo(f"Restored the backup of {manifest.made_at}: {shell.as_counts(_rows(manifest))}.")
    if undone is not None:
        typer.echo(f"Erased again what was erased since: {repeated} users, messages, memories and values.")
    done = "The service will index" if index_later else "Indexed"
    typer.echo(f"{done} {shell.as_counts(indexed)}.")


def _restore(
    settings: Settings, file: Path, *, replace: bool, yes: bool, repeats: bool | None
) -> "tuple[Manifest, UndoneErasures | None]":
    """Restore, and return the manifest and the erasures to repeat; None = nothing is to be repeated."""
    from services.backup.restore import Target, restore  # noqa: PLC0415 — a sixth of a second
    from services.backup.undone import UndoneErasures, undone_by  # noqa: PLC0415

    with Archive.open(file) as archive:
        manifest = archive.manifest
        rows = sum(table.rows for table in manifest.tables)
        with shell.progress_bar() as progress:
            checked = progress.add_task("check", total=rows)
            archive.verify(lambda more: progress.advance(checked, more))
        with _postgres(settings) as (database_url, owner_url):
            if owner_url is None:
                shell.fail(
                    "set ANAMNESIS_MIGRATION_DATABASE_URL to the address of the tables' owner", shell.WRONG_USE
                )
            undone = undone_by(owner_url, archive) if replace else UndoneErasures()
            repeats = _repeats(undone, repeats, yes=yes)
            if replace:
                shell.confirm(f"Permanently replace everything with the backup of {manifest.made_at}?", yes=yes)
            with shell.progress_bar() as progress:
                restored = progress.add_task("restore", total=rows)
                restore(
                    Target(owner_url, role_of(database_url)),
                    archive,
                    replace=replace,
                    on_rows=lambda more: progress.advance(restored, more),
                )
    return manifest, undone if repeats else None


def _repeats(undone: "UndoneErasures", repeats: bool | None, *, yes: bool) -> bool:
    """Name what a restore brings back that was erased since, and return whether to erase it again."""
    if undone.conversations:
        typer.echo(
            f"Conversations that were deleted since the backup come back: {undone.conversations}.", err=True
        )
    if not undone.named:
        return False
    typer.echo(
        f"Since the backup was made, {', '.join(undone.named)} were erased, or had something forgotten for good "
        f"({len(undone.users)} users, {len(undone.receipts)} receipts); restoring brings it back.",
        err=True,
    )
    if repeats is not None:
        return repeats
    if yes:
        shell.fail("say --repeat-erasures or --undo-erasures; nothing was changed", shell.WRONG_USE)
    return typer.confirm("Erase it again right after restoring?", default=True, err=True)


async def _repeat(settings: Settings, undone: "UndoneErasures") -> int:
    from services.backup.undone import repeat  # noqa: PLC0415

    async with shell.open_all_services(settings) as services:
        return await repeat(services, undone)


async def _rebuild(settings: Settings, *, later: bool) -> dict[str, int]:
    # This takes a fifth of a second.
    from services.backup.restore import users_without_their_words  # noqa: PLC0415

    async with shell.open_all_services(settings) as services:
        if lost := await users_without_their_words(services.database):
            typer.echo(
                f"The words of {', '.join(lost)} cannot be read: their keys were renewed after this backup, when "
                "something of theirs was deleted for good. What they say from now on is kept as usual.",
                err=True,
            )
        if later:
            return dict(
                zip(("episodes", "passages"), await services.index_rebuild.leave_to_service(), strict=True)
            )
        return await rebuild_indexes(services)


@contextmanager
def _postgres(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """Yield PostgreSQL's addresses. It runs outside an event loop, so that Ctrl-C ends the work at once."""
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
