"""`anamnesis erase`: remove a user."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from anamnesis_client import Anamnesis
from api.cli import shell
from api.cli.service import over_http
from services.engines import open_engines
from services.memory.removal.tables import scrub as scrub_tables
from services.platform.settings import Settings

_SHOWN = ("conversations", "messages", "turns", "jobs")
"""Kinds of data that the summary names; `--json` counts all kinds."""


@over_http
def erase(
    service: Anamnesis,
    user: shell.OfUser,
    space: shell.InSpace = None,
    scrub: Annotated[
        bool,
        typer.Option(
            "--scrub",
            help="Also rewrite tables and index, so that no file keeps an erased byte; on the service's machine.",
        ),
    ] = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> None:
    """Permanently remove a user, or one space of a user, with everything stored, and report what was removed.

    Example: `anamnesis erase u-1 --yes --scrub`
    """
    what = f"the user {user}" if space is None else f"the space {space} of the user {user}"
    shell.confirm(f"Permanently erase {what}?", yes=yes)
    path = ("users", user) if space is None else ("users", user, "spaces", space)
    if scrub:
        erased = shell.run(lambda settings: _erase_and_scrub(settings, service, path))
    else:
        erased = service.request("DELETE", *path)
    if as_json:
        shell.print_json({**erased, "scrubbed": scrub})
    else:
        _show(erased, scrubbed=scrub)


async def _erase_and_scrub(settings: Settings, service: Anamnesis, path: Sequence[str]) -> dict[str, Any]:
    async with open_engines(settings) as engines:
        if engines.owner_url is None:
            shell.fail(
                "--scrub needs ANAMNESIS_MIGRATION_DATABASE_URL, the address of the tables' owner", shell.WRONG_USE
            )
        async with shell.open_services_on(settings, engines) as services:
            erased: dict[str, Any] = await asyncio.to_thread(service.request, "DELETE", *path)
            await scrub_tables(engines.owner_url)
            await shell.wait_for_milvus(services)
            with shell.one_line_errors("The data is erased, but the index was not rewritten: anamnesis reindex"):
                await services.erasure.scrub_index()
            return erased


def _show(erased: dict[str, Any], *, scrubbed: bool) -> None:
    """Say what was removed."""
    removed = {kind: count for kinds in erased["removed"].values() for kind, count in kinds.items()}
    shown = {kind: removed.get(kind, 0) for kind in _SHOWN}
    space = erased.get("space")
    what = erased["user_id"] if space is None else f"the space {space} of {erased['user_id']}"
    typer.echo(f"Erased {what}: {shell.as_counts({'memories': removed.get('episodes', 0), **shown})}.")
    for store in erased["pending"]:
        typer.echo(f"{store} did not answer; a background job removes what it holds.")
    if scrubbed:
        typer.echo("Tables and index were rewritten without the erased data.")
    else:
        typer.echo("The bytes stay in the stores' files until they are overwritten; --scrub does that at once.")
