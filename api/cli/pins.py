"""`anamnesis memory pin` and `unpin`: keep a memory or a value of core memory from maintenance."""

from typing import Annotated
from uuid import UUID

import typer

from api.cli.shell import InSpace, OfExpert, OfTenant, OfUser, open_services_on_postgres, run
from api.cli.tenants import named
from services.identity.tenants import Tenants
from services.platform.settings import Settings

What = Annotated[str, typer.Argument(help="Id of a memory, or field of core memory such as allergies.")]
Value = Annotated[str | None, typer.Argument(help="The value of the field; every value unless given.")]
Section = Annotated[str, typer.Option(help="Section of core memory.")]


def pin(
    user: OfUser,
    what: What,
    value: Value = None,
    section: Section = "human",
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
) -> None:
    """Pin a memory, or a value of core memory: it neither fades nor is replaced in the background.

    Example: `anamnesis memory pin u-1 allergies peanuts`
    """
    _set(tenant, user, expert, space, section, what, value, pinned=True)
    typer.echo(f"Pinned {what}.")


def unpin(
    user: OfUser,
    what: What,
    value: Value = None,
    section: Section = "human",
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
) -> None:
    """Unpin a memory, or a value of core memory.

    Example: `anamnesis memory unpin u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    _set(tenant, user, expert, space, section, what, value, pinned=False)
    typer.echo(f"Unpinned {what}.")


def _set(
    tenant: str,
    user: str,
    expert: str,
    space: str | None,
    section: str,
    what: str,
    value: str | None,
    *,
    pinned: bool,
) -> None:
    async def work(settings: Settings) -> None:
        async with open_services_on_postgres(settings) as services:
            found = await named(Tenants(services.database), tenant)
            pins = services.memory.pins
            try:
                episode_id = UUID(what)
            except ValueError:
                owner = await services.memory.core.owner(found.id, user, expert, space)
                await pins.set_on_value(owner, section, what, value, pinned=pinned)
            else:
                await pins.set_on_episode(found.id, user, episode_id, pinned=pinned)

    run(work)
