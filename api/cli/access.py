"""`anamnesis tenants` and `anamnesis keys`: tenants, and the API keys of their callers."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import typer

from api.cli.shell import AsJson, Named, command_group, print_json, print_table, run
from services.engines import open_database
from services.errors import NotFound
from services.identity.api_keys import ApiKey, ApiKeys
from services.identity.caller import SCOPES, known_scopes
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings

tenants_app = command_group("Create and list tenants.")


@tenants_app.command(name="create")
def create_tenant(name: Annotated[str, typer.Argument(help="1 to 128 of letters, digits and ._:@-")]) -> None:
    """Create a tenant: its users, conversations and keys are invisible to other tenants.

    Example: `anamnesis tenants create web-shop`
    """

    async def work(settings: Settings) -> Tenant:
        async with open_database(settings) as database:
            return await Tenants(database).create(name)

    tenant = run(work)
    typer.echo(f"Created the tenant {tenant.name} with the id {tenant.id}.")


@tenants_app.command(name="list")
def list_tenants(as_json: AsJson = False) -> None:
    """List all tenants.

    Example: `anamnesis tenants list --json`
    """

    async def work(settings: Settings) -> Sequence[Tenant]:
        async with open_database(settings) as database:
            return await Tenants(database).list()

    found = run(work)
    if as_json:
        print_json(found)
    else:
        print_table({"id": "id", "name": "name", "created_at": "created"}, found)


async def named(tenants: Tenants, name: str) -> Tenant:
    """Return the tenant with this name or id. Raises `NotFound` if there is no such tenant."""
    if (found := await tenants.by_name_or_id(name)) is None:
        raise NotFound(f"There is no tenant {name}; see: anamnesis tenants list")
    return found


async def named_or_all(tenants: Tenants, name: str | None) -> Sequence[Tenant]:
    """Return the named tenant, or all tenants without a name. Raises `NotFound` if there is no tenant of this
    name."""
    return [await named(tenants, name)] if name else await tenants.list()


keys_app = command_group("Create, list and revoke API keys.")

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


@keys_app.command(name="create")
def create_key(
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


@keys_app.command(name="list")
def list_keys(tenant: Named = None, as_json: AsJson = False) -> None:
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


@keys_app.command(name="revoke")
def revoke_key(
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
    """Return the key's metadata, with its tenant by name."""
    return {**vars(key), "tenant": owner.name}
