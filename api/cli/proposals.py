"""`anamnesis proposals`: changes of memory that wait for the user, with their sources."""

from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis
from api.cli.service import over_http
from api.cli.shell import AsJson, Limit, OfUser, as_text, command_group, print_json

app = command_group("List, accept, refuse and undo changes of memory that wait for the user.")

ProposalId = Annotated[UUID, typer.Argument(metavar="PROPOSAL", help="Id of the proposal.")]

_PATH = "memory-proposals"


@app.command(name="list")
@over_http
def list_(service: Anamnesis, user: OfUser, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List what waits, newest first, with its sources.

    Example: `anamnesis proposals list u-1`
    """
    found = list(service.items("users", user, _PATH, limit=limit))
    if as_json:
        print_json(found)
    elif found:
        for each in found:
            _show(each)
    else:
        typer.echo("Nothing waits.")


@app.command()
@over_http
def accept(service: Anamnesis, user: OfUser, proposal_id: ProposalId) -> None:
    """Carry a proposal out.

    Example: `anamnesis proposals accept u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    service.request("POST", "users", user, _PATH, proposal_id, json={"accept": True})
    typer.echo(f"Accepted. To undo: anamnesis proposals undo {user} {proposal_id}")


@app.command()
@over_http
def refuse(service: Anamnesis, user: OfUser, proposal_id: ProposalId) -> None:
    """Refuse a proposal; it is not made again.

    Example: `anamnesis proposals refuse u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    service.request("POST", "users", user, _PATH, proposal_id, json={"accept": False})
    typer.echo("Refused.")


@app.command()
@over_http
def undo(service: Anamnesis, user: OfUser, proposal_id: ProposalId) -> None:
    """Undo what an accepted proposal changed.

    Example: `anamnesis proposals undo u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    service.request("POST", "users", user, _PATH, proposal_id, "undo")
    typer.echo("Undone.")


def _show(proposal: dict[str, Any]) -> None:
    console = Console(soft_wrap=True)
    console.print(f"[bold]{proposal['kind']}[/]  {proposal['id']}  [dim]{as_text(proposal['at'], 'at')}[/]")
    if not proposal["memories"]:
        console.print(f"  {escape(proposal['text'])}")
    for sign, memory in zip("+-", proposal["memories"], strict=False):
        where = f"{memory['section']} · {memory['field']}: " if memory["section"] else ""
        when = as_text(memory["created_at"], "created_at")
        console.print(f"  {sign} {escape(where + memory['text'])}  [dim]{when}[/]")
        for said in memory["messages"]:
            console.print(f"      [dim]{_said(said)}[/]")
    for said in proposal["messages"]:
        console.print(f"      [dim]{_said(said)}[/]")


def _said(message: dict[str, Any]) -> str:
    when = as_text(message["created_at"], "created_at")
    return f"{when} {message['role']}: {escape(message['content'])}"
