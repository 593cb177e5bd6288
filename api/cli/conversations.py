"""`anamnesis conversations`: list, show and delete conversations."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape

from api.cli.shell import (
    AsJson,
    Limit,
    OfTenant,
    Yes,
    as_counts,
    as_text,
    confirm,
    open_all_services,
    print_json,
    print_page,
    run,
)
from api.cli.tenants import named
from services.engines import open_database
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.conversations.transcript import Conversation, Message
    from services.memory.removal.wholes import Erased

app = typer.Typer(no_args_is_help=True, help="List, show and delete conversations.", rich_markup_mode="markdown")

_COLUMNS = {
    "id": "id",
    "user_id": "user",
    "session_id": "session",
    "expert": "expert",
    "created_at": "created",
    "title": "title",
}
_PAGE = 200

OfConversation = Annotated[
    UUID, typer.Argument(metavar="ID", help="The conversation's id, as `conversations list` shows it.")
]


@app.command(name="list")
def list_(
    user: Annotated[str | None, typer.Option(help="Only conversations of this user.")] = None,
    tenant: OfTenant = "default",
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the conversations of a tenant, or of one user, newest first.

    Example: `anamnesis conversations list --user u-1`
    """

    async def read(settings: Settings) -> "Sequence[Conversation]":
        from services.conversations.transcript import Transcript  # noqa: PLC0415 — help needs none of it

        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            return await Transcript(database).conversations(owner.id, user_id=user, limit=limit + 1)

    print_page(_COLUMNS, run(read), limit=limit, as_json=as_json)


@app.command()
def show(conversation: OfConversation, tenant: OfTenant = "default", as_json: AsJson = False) -> None:
    """Show a conversation with its messages, oldest first.

    Example: `anamnesis conversations show 01a1fd62-e395-7407-b7b8-45bfb81ca93b`
    """
    found, messages = run(lambda settings: _read(settings, tenant, conversation))
    if as_json:
        print_json({**asdict(found), "messages": messages})
        return
    console = Console(soft_wrap=True)
    console.print(
        f"[bold]{escape(found.session_id)}[/] · {escape(found.user_id)} with {escape(found.expert)}"
        f" · since {as_text(found.created_at)}"
    )
    for message in messages:
        who = message.speaker or message.role
        unfinished = "" if message.completed else " [dim](incomplete)[/]"
        when = f"[dim]{as_text(message.created_at)}[/]"
        console.print(f"{when} [bold]{escape(who)}[/] {escape(message.content)}{unfinished}")


@app.command()
def delete(
    conversation: OfConversation,
    keep_memories: Annotated[
        bool, typer.Option("--keep-memories", help="Keep core memory and written memories that come from it.")
    ] = False,
    tenant: OfTenant = "default",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a conversation with the memories that come from it. Daily summaries are rebuilt without it.

    Example: `anamnesis conversations delete 01a1fd62-e395-7407-b7b8-45bfb81ca93b --yes`
    """
    kept = "; memories are kept" if keep_memories else " with the memories that come from it"
    confirm(f"Permanently delete the conversation {conversation}{kept}?", yes=yes)

    async def remove(settings: Settings) -> "Erased":
        async with open_all_services(settings) as services:
            owner = await named(Tenants(services.database), tenant)
            return await services.erasure.conversation(owner.id, conversation, keep_memories=keep_memories)

    erased = run(remove)
    counts = erased.removed["postgresql"]
    if as_json:
        named_by = {"conversation_id": conversation, "keep_memories": keep_memories}
        print_json({**named_by, "removed": counts, "pending": erased.pending})
        return
    typer.echo(f"Deleted {as_counts(counts)}.")
    for store in erased.pending:
        typer.echo(f"{store} did not answer; a background job removes what it holds.", err=True)


async def _read(settings: Settings, tenant: str, conversation_id: UUID) -> "tuple[Conversation, list[Message]]":
    from services.conversations.transcript import Transcript  # noqa: PLC0415 — help needs none of it

    async with open_database(settings) as database:
        owner = await named(Tenants(database), tenant)
        transcript = Transcript(database)
        found = await transcript.conversation(owner.id, conversation_id)
        messages: list[Message] = []
        after: Any = None
        while page := await transcript.messages(owner.id, conversation_id, after=after, limit=_PAGE):
            messages.extend(page)
            after = (page[-1].created_at, page[-1].id)
        return found, messages
