"""`anamnesis memory`: show, search, edit and delete what is remembered about a user."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape

from api.cli.shell import (
    WRONG_USE,
    AsJson,
    AsOf,
    InSpace,
    Limit,
    OfExpert,
    OfTenant,
    OfUser,
    Result,
    Yes,
    as_text,
    confirm,
    fail,
    open_all_services,
    open_services_on_postgres,
    print_json,
    print_table,
    run,
)
from api.cli.tenants import named
from services.engines import open_database
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services
    from services.memory.archive import FoundEpisodes
    from services.memory.blocks import Block, Owner
    from services.memory.episodes.episode import WrittenEpisode
    from services.memory.items import ItemChange
    from state.memory import MemoryChange

app = typer.Typer(
    no_args_is_help=True,
    help="Show, search, edit and delete what is remembered of a user.",
    rich_markup_mode="markdown",
)


@app.command()
def show(
    user: OfUser,
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
    limit: Limit = 20,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Show a user's core memory and newest written memories, now or as of a moment.

    Example: `anamnesis memory show u-1 --as-of 2026-06-30`
    """
    at = as_of and as_of.astimezone()

    async def read(services: "Services", owner: "Owner") -> "tuple[list[Block], list[WrittenEpisode]]":
        return await services.memory.core.read(owner, at), await services.memory.episodes.written(
            owner, limit=limit, visible=False, at=at
        )

    sections, episodes = _with_memory(tenant, user, expert, space, read)
    if as_json:
        print_json({"core_memory": sections, "episodes": episodes})
        return
    console = Console(soft_wrap=True)
    for section in sections:
        changed = f"version {section.version}, {as_text(section.updated_at)}"
        console.print(f"[bold]{escape(section.section)}[/]  [dim]{changed}[/]")
        for name, value in section.content.items():
            console.print(f"  {escape(name)}: {escape(as_text(value))}")
    if not sections:
        console.print("Core memory is empty.")
    if episodes:
        console.print()
        print_table({"id": "id", "episode_type": "type", "said_at": "said", "content": "memory"}, episodes)


@app.command()
def search(
    user: OfUser,
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Memories to show at most.")] = 10,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Search what was said and written, best first, with the same ranking as answers.

    Example: `anamnesis memory search u-1 "favourite food"`
    """
    if not query.strip():
        fail("the query is empty", WRONG_USE)
    at = as_of and as_of.astimezone()

    async def find(services: "Services", owner: "Owner") -> "FoundEpisodes":
        from services.memory.episodes.scope import Scope  # noqa: PLC0415 — help needs none of it

        scope = Scope.of(owner, as_of=at)
        return await services.memory.archive.search(scope, query, top_k=limit, now=at or datetime.now(UTC))

    found = _with_memory(tenant, user, expert, space, find, index=True)
    for store in found.degraded:
        typer.echo(f"{store} did not answer; the rest was searched.", err=True)
    if as_json:
        print_json(found)
    elif found.items:
        columns = {"id": "id", "episode_type": "type", "created_at": "when", "score": "score", "content": "memory"}
        print_table(columns, [{**vars(each), "score": f"{each.score:.2f}"} for each in found.items])
    else:
        typer.echo("Nothing was found.")


@app.command()
def edit(
    user: OfUser,
    what: Annotated[
        str, typer.Argument(help="Field of core memory, such as home or allergies; or id of a memory.")
    ],
    value: Annotated[str | None, typer.Argument(help="New value of the field, or new text of the memory.")] = None,
    *,
    add: Annotated[str | None, typer.Option(help="Item to add to a list.")] = None,
    remove: Annotated[str | None, typer.Option(help="Item to remove.")] = None,
    replace: Annotated[str | None, typer.Option(help="Item to replace; needs --by.")] = None,
    by: Annotated[str | None, typer.Option(help="The item that replaces it.")] = None,
    section: Annotated[str, typer.Option(help="Section of core memory.")] = "human",
    importance: Annotated[
        float | None, typer.Option(min=0, max=1, help="New importance of a memory, 0 to 1.")
    ] = None,
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
) -> None:
    """Change one field or one item of a list in core memory, or a written memory. Everything else stays.

    Example: `anamnesis memory edit u-1 allergies --remove cats`
    """
    items = (add, remove, replace, by)
    if episode_id := _id(what):
        if any(items) or (value is None and importance is None):
            fail("of a memory, its new text or --importance can be given", WRONG_USE)
        _edit_memory(tenant, user, episode_id, value, importance)
        typer.echo(f"Changed the memory {what}.")
        return
    if importance is not None:
        fail("--importance is for a memory, by its id; fields of core memory have none", WRONG_USE)
    change = _change(section, what, value=value, add=add, remove=remove, replace=replace, by=by)

    async def apply(services: "Services", owner: "Owner") -> "list[Block]":
        from services.memory.operations import Trigger  # noqa: PLC0415 — help needs none of it

        changed = await services.memory.core.change_items(owner, [change], Trigger("user"))
        if changed.unmatched:
            fail(f"no single item of {section}.{what} matches; see: anamnesis memory show {user}")
        return changed.blocks

    blocks = _with_memory(tenant, user, expert, space, apply)
    now = blocks[0].content.get(what) if blocks else None
    typer.echo(f"{what}: {as_text(now)}" if now is not None else f"{what} is empty now.")


def _edit_memory(tenant: str, user: str, episode_id: UUID, content: str | None, importance: float | None) -> None:
    async def apply(settings: Settings) -> None:
        from services.memory.catalog import EpisodeCatalog  # noqa: PLC0415 — help needs none of it
        from services.memory.operations import OperationLog, Trigger  # noqa: PLC0415

        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            catalog = EpisodeCatalog(database, OperationLog(database))
            await catalog.edit(owner.id, user, episode_id, Trigger("user"), content=content, importance=importance)

    run(apply)


@app.command()
def delete(
    user: OfUser,
    what: Annotated[str, typer.Argument(help="Id of a memory, or name of a section of core memory.")],
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
    yes: Yes = False,
) -> None:
    """Delete a memory, or a section of core memory with its history. Messages stay in their conversation.

    Example: `anamnesis memory delete u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b --yes`
    """
    episode_id = _id(what)
    thing = f"the memory {what}" if episode_id else f"the section {what} of core memory, with its history"
    confirm(f"Permanently delete {thing}?", yes=yes)

    async def remove(services: "Services", owner: "Owner") -> None:
        from services.memory.operations import Trigger  # noqa: PLC0415 — help needs none of it

        if episode_id is None:
            await services.memory.core.forget(owner, what, Trigger("user"))
        else:
            await services.memory.archive.remove(owner, episode_id, Trigger("user"))

    _with_memory(tenant, user, expert, space, remove)
    typer.echo(f"Deleted {thing}.")


@app.command()
def forget(
    user: OfUser,
    what: Annotated[str, typer.Argument(help="What to forget, in the user's words.")],
    tenant: OfTenant = "default",
    expert: OfExpert = "default",
    space: InSpace = None,
    as_json: AsJson = False,
) -> None:
    """Forget what a text describes: remove it from core memory and recall. Messages stay in their conversation.

    Example: `anamnesis memory forget u-1 "diabetes"`
    """
    if not what.strip():
        fail("what to forget is empty", WRONG_USE)

    async def apply(services: "Services", owner: "Owner") -> "MemoryChange":
        from services.memory.model import ChangeRequest  # noqa: PLC0415 — help needs none of it
        from services.memory.operations import Trigger  # noqa: PLC0415

        return await services.memory.changes.forget(ChangeRequest.outside_of_turns(owner, Trigger("user")), what)

    change = _with_memory(tenant, user, expert, space, apply)
    if as_json:
        print_json(change)
    else:
        typer.echo(change["summary"])


def _change(
    section: str,
    field: str,
    *,
    value: str | None,
    add: str | None,
    remove: str | None,
    replace: str | None,
    by: str | None,
) -> "ItemChange":
    from services.memory.items import ItemChange  # noqa: PLC0415 — help needs none of it

    if sum(each is not None for each in (value, add, remove, replace)) != 1:
        fail("give one of: a value, --add, --remove, --replace with --by", WRONG_USE)
    if (replace is None) != (by is None):
        fail("--replace names the old item and --by the new one; give both", WRONG_USE)
    if add is not None:
        return ItemChange("add", section, field, add)
    if remove is not None:
        return ItemChange("remove", section, field, old=remove)
    if replace is not None:
        return ItemChange("replace", section, field, by, replace)
    return ItemChange("replace", section, field, value)


def _with_memory(
    tenant: str,
    user: str,
    expert: str,
    space: str | None,
    work: "Callable[[Services, Owner], Coroutine[Any, Any, Result]]",
    *,
    index: bool = False,
) -> Result:
    """Run work on a user's memory with an expert, in a space or outside; with `index`, connect to Milvus."""

    async def done(settings: Settings) -> Result:
        opened = open_all_services(settings) if index else open_services_on_postgres(settings)
        async with opened as services:
            owner = await named(Tenants(services.database), tenant)
            return await work(services, await services.memory.core.owner(owner.id, user, expert, space))

    return run(done)


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
