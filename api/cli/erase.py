"""`anamnesis erase`: remove a user."""

import asyncio
import json
from dataclasses import asdict
from typing import Annotated

import typer

from api.cli.shell import FAILED, WRONG_USE, fail, settings_or_exit
from services.engines import migrate_if_owner, open_engines
from services.erasure.erasure import Erased, Erasure
from services.erasure.scrub import scrub as scrub_tables
from services.errors import AnamnesisError, Unavailable
from services.platform.settings import Settings

_TRIES, _BETWEEN_TRIES_S = 20, 0.5


def erase(
    user: Annotated[str, typer.Argument(help="The caller's own name for the user.")],
    tenant: Annotated[str, typer.Option(help="Name or id of the user's tenant.")] = "default",
    scrub: Annotated[
        bool,
        typer.Option("--scrub", help="Also write tables and index anew, so that no erased byte stays in a file."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Remove a user, with all that is stored for them, and say what was removed from where.

    Example: `anamnesis erase u-1 --yes --scrub`
    """
    settings = settings_or_exit()
    if not yes and not typer.confirm(f"Erase {user} of the tenant {tenant}, for good?", err=True):
        raise typer.Exit(FAILED)
    try:
        erased = asyncio.run(_erase(settings, tenant, user, scrub=scrub))
    except AnamnesisError as error:
        fail(error.message)
    if as_json:
        typer.echo(json.dumps({**asdict(erased), "scrubbed": scrub}, ensure_ascii=False))
    else:
        _show(erased, scrubbed=scrub)


async def _erase(settings: Settings, tenant: str, user: str, *, scrub: bool) -> Erased:
    from services.erasure.opening import open_erasure  # noqa: PLC0415 — help needs none of it

    async with open_engines(settings) as engines:
        owner_url = engines.owner_url
        if scrub and owner_url is None:
            fail("--scrub needs ANAMNESIS_MIGRATION_DATABASE_URL, the address of the tables' owner", WRONG_USE)
        await migrate_if_owner(engines)
        async with open_erasure(settings, engines.database_url, engines.milvus_uri) as (tenants, erasure):
            if (found := await tenants.by_name_or_id(tenant)) is None:
                fail(f"there is no tenant named {tenant}")
            erased = await erasure.erase(found.id, user)
            if scrub and owner_url is not None:
                await scrub_tables(owner_url)
                await _scrub_index(erasure)
        return erased


async def _scrub_index(erasure: Erasure) -> None:
    for _ in range(_TRIES):  # an embedded Milvus may have been started by this command just now
        try:
            await erasure.scrub_index()
            return
        except Unavailable as error:
            reason = error.message
            await asyncio.sleep(_BETWEEN_TRIES_S)
    fail(f"{reason} The user is erased, but the index was not written anew. Run: anamnesis reindex")


def _show(erased: Erased, *, scrubbed: bool) -> None:
    for store, kinds in erased.removed.items():
        typer.echo(f"{store}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    for store in erased.pending:
        typer.echo(f"{store}: did not answer; a background job goes on trying")
    typer.echo(
        "The tables and the index were written anew."
        if scrubbed
        else "Erased. --scrub also overwrites what is free."
    )
