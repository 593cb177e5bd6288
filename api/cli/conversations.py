"""`anamnesis conversations`: list, show and delete conversations."""

from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis
from api.cli.service import first_items, over_http
from api.cli.shell import AsJson, Limit, Yes, as_counts, as_text, command_group, confirm, print_json, print_page

app = command_group("List, show and delete conversations.")

_COLUMNS = {
    "id": "id",
    "user_id": "user",
    "session_id": "session",
    "expert": "expert",
    "created_at": "created",
    "title": "title",
}

OfConversation = Annotated[
    UUID, typer.Argument(metavar="ID", help="The conversation's id, as `conversations list` shows it.")
]


@app.command(name="list")
@over_http
def list_(
    service: Anamnesis,
    user: Annotated[str | None, typer.Option(help="Only conversations of this user.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List conversations, of all users or of one, newest first.

    Example: `anamnesis conversations list --user u-1`
    """
    print_page(_COLUMNS, first_items(service, limit, "conversations", user_id=user), limit=limit, as_json=as_json)


@app.command()
@over_http
def show(service: Anamnesis, conversation: OfConversation, as_json: AsJson = False) -> None:
    """Show a conversation with its messages, oldest first.

    Example: `anamnesis conversations show 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    found = service.request("GET", "conversations", conversation)
    messages = service.items("conversations", conversation, "messages")
    if as_json:
        print_json({**found, "messages": list(messages)})
        return
    console = Console(soft_wrap=True)
    console.print(
        f"[bold]{escape(found['session_id'])}[/] · {escape(found['user_id'])} with {escape(found['expert'])}"
        f" · since {as_text(found['created_at'], 'created_at')}"
    )
    for message in messages:
        who = message["speaker"] or message["role"]
        unfinished = "" if message["completed"] else " [dim](incomplete)[/]"
        when = f"[dim]{as_text(message['created_at'], 'created_at')}[/]"
        console.print(f"{when} [bold]{escape(who)}[/] {escape(message['content'])}{unfinished}")


@app.command()
@over_http
def delete(
    service: Anamnesis,
    conversation: OfConversation,
    keep_memories: Annotated[
        bool, typer.Option("--keep-memories", help="Keep core memory and written memories that come from it.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a conversation with the memories that come from it. Daily summaries are rebuilt without it.

    Example: `anamnesis conversations delete 01a1fd62-e395-7407-b7b8-45bfb81ca93b --yes`
    """
    kept = "; memories are kept" if keep_memories else " with the memories that come from it"
    confirm(f"Permanently delete the conversation {conversation}{kept}?", yes=yes)
    erased = service.request("DELETE", "conversations", conversation, params={"keep_memories": keep_memories})
    if as_json:
        print_json(erased)
        return
    typer.echo(f"Deleted {as_counts(erased['removed'])}.")
    for store in erased["pending"]:
        typer.echo(f"{store} did not answer; a background job removes what it holds.", err=True)
