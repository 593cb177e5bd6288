"""`anamnesis audit`: search every store of the service for a word."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import shell
from api.cli.tenants import named
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.memory.removal.canary import Search


def audit(
    user: shell.OfUser,
    canary: Annotated[str, typer.Option("--canary", help="The word to search for.")],
    tenant: shell.OfTenant = "default",
    files: Annotated[
        list[Path] | None, typer.Option("--files", help="A log or folder to search as well; can be repeated.")
    ] = None,
    as_json: shell.AsJson = False,
) -> None:
    """Name every place that holds a word: tables, the job queue, the index, Redis, and files of the data folder.

    Says which stores were searched, and where words that were removed may remain and until when.

    Exit code 1 if it is anywhere but in conversations and the files that store these. Encrypted words are opened.
    Bytes of deleted rows stay in the stores' files until they are overwritten; see erase --scrub. A user who was
    erased may be named.

    Example: `anamnesis audit u-1 --canary asthma --files /var/log/anamnesis.log`
    """

    async def work(settings: Settings) -> "Search":
        from services.memory.removal.canary import CanarySearch  # noqa: PLC0415 — help needs none of it

        async with shell.open_all_services(settings) as services:
            found = await named(Tenants(services.database), tenant)
            search = CanarySearch(
                services.database,
                services.memory.index,
                services.redis,
                events_keep_s=settings.turn_events_keep_s,
            )
            return await search.search(found.id, user, canary, [settings.data_dir, *(files or [])])

    search = shell.run(work)
    if as_json:
        shell.print_json(search)
    else:
        for each in search.findings:
            where = f" ({', '.join(each.columns)})" if each.columns else ""
            typer.echo(f"{each.store}: {each.place}{where}, {shell.as_counts({'rows': each.rows})}")
        found = shell.as_counts({"places": len(search.findings)})
        typer.echo(f"Found in {found}. Searched: {', '.join(search.searched)}.")
        for left in search.remains:
            where = "searched" if left.is_searched else "not searched"
            typer.echo(f"May remain in {left.place} ({where}) until {left.until}.")
        for store in search.unreachable:
            typer.echo(f"{store} does not answer and was not searched.", err=True)
    if search.beyond_conversations or search.unreachable:
        raise typer.Exit(shell.FAILED)
