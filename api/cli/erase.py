"""`anamnesis erase`: remove a user."""

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.shell import (
    WRONG_USE,
    AsJson,
    InSpace,
    OfTenant,
    OfUser,
    Yes,
    as_counts,
    confirm,
    fail,
    quiet_settings,
)
from api.cli.tenants import named
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError, Unavailable
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.memory.removal.wholes import Erased, WholeErasure

_TRIES, _BETWEEN_TRIES_S = 20, 0.5
_SHOWN = ("conversations", "messages", "turns", "jobs")
"""Kinds of data that the summary names; `--json` counts all kinds."""


def erase(
    user: OfUser,
    tenant: OfTenant = "default",
    space: InSpace = None,
    scrub: Annotated[
        bool,
        typer.Option("--scrub", help="Also rewrite tables and index, so that no erased byte stays in a file."),
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Permanently remove a user, or one space of a user, with everything stored, and report what was removed.

    Example: `anamnesis erase u-1 --yes --scrub`
    """
    settings = quiet_settings()
    what = f"the user {user}" if space is None else f"the space {space} of the user {user}"
    confirm(f"Permanently erase {what} of the tenant {tenant}?", yes=yes)
    try:
        erased = asyncio.run(_erase(settings, tenant, user, space, scrub=scrub))
    except AnamnesisError as error:
        fail(error.message)
    if as_json:
        whose = {"user_id": user} if space is None else {"user_id": user, "space": space}
        typer.echo(json.dumps({**whose, **asdict(erased), "scrubbed": scrub}, ensure_ascii=False))
    else:
        _show(user if space is None else f"the space {space} of {user}", erased, scrubbed=scrub)


async def _erase(settings: Settings, tenant: str, user: str, space: str | None, *, scrub: bool) -> "Erased":
    from services.memory.removal.scrub import scrub as scrub_tables  # noqa: PLC0415
    from services.removal_wiring import open_erasure  # noqa: PLC0415 — help needs none of it

    async with open_engines(settings) as engines:
        owner_url = engines.owner_url
        if scrub and owner_url is None:
            fail("--scrub needs ANAMNESIS_MIGRATION_DATABASE_URL, the address of the tables' owner", WRONG_USE)
        await migrate_if_owner(engines)
        async with open_erasure(settings, engines.database_url, engines.milvus_uri) as (tenants, erasure):
            found = await named(tenants, tenant)
            erased = await (
                erasure.user(found.id, user) if space is None else erasure.space(found.id, user, space)
            )
            if scrub and owner_url is not None:
                await scrub_tables(owner_url)
                await _scrub_index(erasure)
        return erased


async def _scrub_index(erasure: "WholeErasure") -> None:
    for _ in range(_TRIES):  # this command may have just started an embedded Milvus
        try:
            await erasure.scrub_index()
            return
        except Unavailable as error:
            reason = error.message
            await asyncio.sleep(_BETWEEN_TRIES_S)
    fail(f"{reason} The data is erased, but the index was not rewritten. Run: anamnesis reindex")


def _show(what: str, erased: "Erased", *, scrubbed: bool) -> None:
    removed = {kind: count for kinds in erased.removed.values() for kind, count in kinds.items()}
    shown = {kind: removed.get(kind, 0) for kind in _SHOWN}
    typer.echo(f"Erased {what}: {as_counts({'memories': removed.get('episodes', 0), **shown})}.")
    for store in erased.pending:
        typer.echo(f"{store} did not answer; a background job removes what it holds.")
    if scrubbed:
        typer.echo("Tables and index were rewritten without the erased data.")
    else:
        typer.echo("The bytes stay in the stores' files until they are overwritten; --scrub does that at once.")
