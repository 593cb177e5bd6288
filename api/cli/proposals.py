"""`anamnesis proposals`: changes of memory that wait for the user, with their sources."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape

from api.cli.shell import (
    AsJson,
    Limit,
    OfTenant,
    OfUser,
    Result,
    as_text,
    open_services_on_postgres,
    print_json,
    run,
)
from api.cli.tenants import named
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services
    from services.memory.proposal_list import Proposal
    from services.memory.upkeep.proposing import Found

app = typer.Typer(
    no_args_is_help=True,
    help="List, accept, refuse and undo changes of memory that wait for the user.",
    rich_markup_mode="markdown",
)

ProposalId = Annotated[UUID, typer.Argument(metavar="PROPOSAL", help="Id of the proposal.")]


@app.command(name="list")
def list_(user: OfUser, tenant: OfTenant = "default", limit: Limit = 20, as_json: AsJson = False) -> None:
    """List what waits, newest first, with its sources.

    Example: `anamnesis proposals list u-1`
    """

    async def work(services: "Services", tenant_id: UUID) -> Any:
        return await services.memory.proposals.list(tenant_id, user, limit=limit)

    found = _with_services(tenant, work)
    if as_json:
        print_json(found)
    elif found:
        for each in found:
            _show(each)
    else:
        typer.echo("Nothing waits.")


@app.command()
def find(user: OfUser, tenant: OfTenant = "default") -> None:
    """Look now for what says the same or contradicts each other, as every night does.

    Example: `anamnesis proposals find u-1`
    """

    async def work(services: "Services", tenant_id: UUID) -> "Found":
        return await services.upkeep.proposer.look(tenant_id, user)

    found = _with_services(tenant, work)
    typer.echo(f"Proposed: {found.proposed}. Applied by policy: {found.applied}.")


@app.command()
def accept(user: OfUser, proposal_id: ProposalId, tenant: OfTenant = "default") -> None:
    """Carry a proposal out.

    Example: `anamnesis proposals accept u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Services", tenant_id: UUID) -> None:
        await services.memory.proposals.settle(tenant_id, user, proposal_id, accept=True)

    _with_services(tenant, work)
    typer.echo(f"Accepted. To undo: anamnesis proposals undo {user} {proposal_id}")


@app.command()
def refuse(user: OfUser, proposal_id: ProposalId, tenant: OfTenant = "default") -> None:
    """Refuse a proposal; it is not made again.

    Example: `anamnesis proposals refuse u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Services", tenant_id: UUID) -> None:
        await services.memory.proposals.settle(tenant_id, user, proposal_id, accept=False)

    _with_services(tenant, work)
    typer.echo("Refused.")


@app.command()
def undo(user: OfUser, proposal_id: ProposalId, tenant: OfTenant = "default") -> None:
    """Undo what an accepted proposal changed.

    Example: `anamnesis proposals undo u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """

    async def work(services: "Services", tenant_id: UUID) -> None:
        await services.memory.proposals.undo(tenant_id, user, proposal_id)

    _with_services(tenant, work)
    typer.echo("Undone.")


def _show(proposal: "Proposal") -> None:
    console = Console(soft_wrap=True)
    console.print(f"[bold]{proposal.kind}[/]  {proposal.id}  [dim]{as_text(proposal.at)}[/]")
    if not proposal.memories:
        console.print(f"  {escape(proposal.text)}")
    for sign, memory in zip("+-", proposal.memories, strict=False):
        where = f"{memory.section} · {memory.field}: " if memory.section else ""
        console.print(f"  {sign} {escape(where + memory.text)}  [dim]{as_text(memory.created_at)}[/]")
        for said in memory.messages:
            console.print(f"      [dim]{as_text(said.created_at)} {said.role}: {escape(said.content)}[/]")
    for said in proposal.messages:
        console.print(f"      [dim]{as_text(said.created_at)} {said.role}: {escape(said.content)}[/]")


def _with_services(tenant: str, work: "Callable[[Services, UUID], Coroutine[Any, Any, Result]]") -> Result:
    async def done(settings: Settings) -> Result:
        async with open_services_on_postgres(settings) as services:
            found = await named(Tenants(services.database), tenant)
            return await work(services, found.id)

    return run(done)
