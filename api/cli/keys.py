"""`anamnesis keys`: create, list and revoke API keys."""

import asyncio
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.cli.shell import AsJson, Named, fail, settings_or_exit
from api.cli.tenants import named, named_or_all
from services.engines import open_database
from services.errors import AnamnesisError, NotFound
from services.identity.api_keys import ApiKey, ApiKeys
from services.identity.caller import SCOPES, Scope, known_scopes
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys.", rich_markup_mode="markdown")

_USUAL = [scope for scope in SCOPES if scope != "admin"]
_Found = list[tuple[Tenant, ApiKey]]


@app.command()
def create(
    name: Annotated[str, typer.Option(help="What the key is for, as a note for people.")],
    tenant: Named = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help=f"Permission: {', '.join(SCOPES)}; may be repeated. Default: all but admin."),
    ] = None,
    acts_for_headers: Annotated[
        bool,
        typer.Option(
            "--acts-for-headers",
            help="Requests to /v1 may name their user in a header; for a gateway that knows its users.",
        ),
    ] = False,
    default_user: Annotated[
        str | None,
        typer.Option(help="User of requests to /v1 that name none; without one, nothing is remembered."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it. It is shown only once: just a hash of it is stored.

    Example: `anamnesis keys create --name web-shop --scope chat --scope memory:read`
    """
    if unknown := set(scope or ()) - set(SCOPES):
        raise typer.BadParameter(f"{min(unknown)} is none of {', '.join(SCOPES)}", param_hint="--scope")
    settings = settings_or_exit()
    try:
        scopes = known_scopes(scope or _USUAL)
        creating = _create(settings, tenant or "default", name, scopes, acts_for_headers, default_user)
        owner, record, key = asyncio.run(creating)
    except AnamnesisError as error:
        fail(error.message)
    if as_json:
        typer.echo(json.dumps({"key": key, **_as_dict(owner, record)}))
        return
    typer.echo(key)
    may = ", ".join(record.scopes)
    if record.acts_for_headers:
        may += "; acts for the users that headers name"
    if record.default_user:
        may += f"; for the user {record.default_user} unless another is named"
    typer.echo(f"Key {record.id} of the tenant {owner.name} ({may}). It is not shown again.", err=True)


@app.command(name="list")
def list_(tenant: Named = None, as_json: AsJson = False) -> None:
    """List the keys of all tenants or of one, including revoked ones.

    Example: `anamnesis keys list --tenant default --json`
    """
    settings = settings_or_exit()
    try:
        found = asyncio.run(_list(settings, tenant))
    except AnamnesisError as error:
        fail(error.message)
    if as_json:
        typer.echo(json.dumps([_as_dict(owner, key) for owner, key in found], ensure_ascii=False))
    else:
        _show(found)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")],
) -> None:
    """Revoke a key at once, in every process.

    Example: `anamnesis keys revoke 01a1fd5b-5d9a-76af-bfbd-943965d02fdb`
    """
    try:
        wanted = UUID(key_id)
    except ValueError:
        raise typer.BadParameter("is not an id; see: anamnesis keys list", param_hint="ID") from None
    settings = settings_or_exit()
    try:
        record = asyncio.run(_revoke(settings, wanted))
    except AnamnesisError as error:
        fail(error.message)
    typer.echo(f"The key {record.id} ({record.name}) is revoked.")


async def _create(
    settings: Settings,
    tenant: str,
    name: str,
    scopes: Iterable[Scope],
    acts_for_headers: bool,
    default_user: str | None,
) -> tuple[Tenant, ApiKey, str]:
    async with open_database(settings) as database:
        owner = await named(Tenants(database), tenant)
        keys = ApiKeys(database)
        return owner, *await keys.create(
            owner.id, name, scopes, acts_for_headers=acts_for_headers, default_user=default_user
        )


async def _list(settings: Settings, tenant: str | None) -> _Found:
    async with open_database(settings) as database:
        keys = ApiKeys(database)
        tenants = await named_or_all(Tenants(database), tenant)
        return [(owner, key) for owner in tenants for key in await keys.list(owner.id)]


async def _revoke(settings: Settings, key_id: UUID) -> ApiKey:
    async with open_database(settings) as database:
        keys = ApiKeys(database)
        for tenant_id in await database.tenants():
            try:
                return await keys.revoke(tenant_id, key_id)
            except NotFound:
                continue
        raise NotFound(f"There is no key {key_id}.")


def _as_dict(owner: Tenant, key: ApiKey) -> dict[str, Any]:
    return {
        "id": str(key.id),
        "name": key.name,
        "tenant": owner.name,
        "scopes": key.scopes,
        "acts_for_headers": key.acts_for_headers,
        "default_user": key.default_user,
        "created_at": _text(key.created_at),
        "last_used_at": _text(key.last_used_at),
        "revoked_at": _text(key.revoked_at),
    }


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _show(found: _Found) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)
    for heading in ("name", "tenant", "scopes", "created", "last used", ""):
        table.add_column(heading)
    for owner, key in found:
        last = f"{key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never"
        state = "revoked" if key.revoked_at else ""
        created = f"{key.created_at:%Y-%m-%d}"
        table.add_row(str(key.id), escape(key.name), owner.name, " ".join(key.scopes), created, last, state)
    Console().print(table)
