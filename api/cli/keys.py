"""`anamnesis keys`: create, list and revoke API keys."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import typer

from api.cli.shell import AsJson, Named, command_group, print_json, print_table, run
from api.cli.tenants import named, named_or_all
from services.engines import open_database
from services.errors import NotFound
from services.identity.api_keys import ApiKey, ApiKeys
from services.identity.caller import SCOPES, known_scopes
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

app = command_group("Create, list and revoke API keys.")

_USUAL = [scope for scope in SCOPES if scope != "admin"]
_COLUMNS = {
    "id": "id",
    "name": "name",
    "tenant": "tenant",
    "scopes": "scopes",
    "created_at": "created",
    "last_used_at": "last used",
    "revoked_at": "revoked",
}


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

    async def make(settings: Settings) -> tuple[Tenant, ApiKey, str]:
        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant or "default")
            scopes = known_scopes(scope or _USUAL)
            return owner, *await ApiKeys(database).create(
                owner.id, name, scopes, acts_for_headers=acts_for_headers, default_user=default_user
            )

    owner, record, key = run(make)
    if as_json:
        print_json({"key": key, **_shown(owner, record)})
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

    async def read(settings: Settings) -> Sequence[dict[str, Any]]:
        async with open_database(settings) as database:
            keys = ApiKeys(database)
            tenants = await named_or_all(Tenants(database), tenant)
            return [_shown(owner, key) for owner in tenants for key in await keys.list(owner.id)]

    found = run(read)
    if as_json:
        print_json(found)
    else:
        print_table(_COLUMNS, found)


@app.command()
def revoke(
    key_id: Annotated[UUID, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")],
) -> None:
    """Revoke a key at once, in every process.

    Example: `anamnesis keys revoke 01a1fd5b-5d9a-76af-bfbd-943965d02fdb`
    """

    async def work(settings: Settings) -> ApiKey:
        async with open_database(settings) as database:
            for tenant_id in await database.tenants():
                try:
                    return await ApiKeys(database).revoke(tenant_id, key_id)
                except NotFound:
                    continue
            raise NotFound(f"There is no key {key_id}.")

    record = run(work)
    typer.echo(f"The key {record.id} ({record.name}) is revoked.")


def _shown(owner: Tenant, key: ApiKey) -> dict[str, Any]:
    """The key's metadata, with its tenant by name."""
    return {**vars(key), "tenant": owner.name}
