"""`anamnesis memory`: show, search, edit, forget and delete what is remembered about a user."""

from itertools import islice
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis
from api.cli import shell
from api.cli.service import over_http
from services.memory.items import ItemChange, apply_changes

app = shell.command_group("Show, search, edit and delete what is remembered of a user.")

_WRITTEN_TYPES = ("preference", "decision", "context", "outcome")


@app.command()
@over_http
def show(
    service: Anamnesis,
    user: shell.OfUser,
    expert: shell.OfExpert = "default",
    space: shell.InSpace = None,
    limit: shell.Limit = 20,
    as_of: shell.AsOf = None,
    as_json: shell.AsJson = False,
) -> None:
    """Show a user's core memory and newest written memories, now or as of a moment.

    Example: `anamnesis memory show u-1 --as-of 2026-06-30`
    """
    at = as_of.astimezone().isoformat() if as_of else None
    sections = core_memory(service, user, expert, space, at)
    episodes = written_memories(service, user, expert, space, limit, at)
    if as_json:
        shell.print_json({"core_memory": sections, "episodes": episodes})
        return
    console = Console(soft_wrap=True)
    for section in sections:
        changed = f"version {section['version']}, {shell.as_text(section['updated_at'], 'updated_at')}"
        console.print(f"[bold]{escape(section['section'])}[/]  [dim]{changed}[/]")
        for name, value in section["content"].items():
            console.print(f"  {escape(name)}: {escape(shell.as_text(value))}")
    if not sections:
        console.print("Core memory is empty.")
    if episodes:
        console.print()
        shell.print_table(
            {"id": "id", "episode_type": "type", "created_at": "said", "content": "memory"}, episodes
        )


def core_memory(
    service: Anamnesis, user: str, expert: str, space: str | None, as_of: str | None = None
) -> list[dict[str, Any]]:
    """Return the sections of core memory, or those of a space, now or as of a moment."""
    query = {"expert": expert, "space": space, "as_of": as_of}
    return list(service.items("users", user, "core-memory", params=query))


def written_memories(
    service: Anamnesis, user: str, expert: str, space: str | None, limit: int, as_of: str | None = None
) -> list[dict[str, Any]]:
    """Return the newest written memories, or those of a space, newest first, now or as of a moment."""
    query = {"expert": expert, "space": space, "as_of": as_of, "archived": False}
    found: list[dict[str, Any]] = []
    for kind in _WRITTEN_TYPES:
        of_kind = service.items("users", user, "episodes", params={**query, "episode_type": kind})
        found += islice((each for each in of_kind if each["space"] == space), limit)
    return sorted(found, key=lambda each: str(each["created_at"]), reverse=True)[:limit]


@app.command()
@over_http
def search(
    service: Anamnesis,
    user: shell.OfUser,
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    expert: shell.OfExpert = "default",
    space: shell.InSpace = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Memories to show at most.")] = 10,
    as_of: shell.AsOf = None,
    as_json: shell.AsJson = False,
) -> None:
    """Search what was said and written, best first, with the same ranking as answers.

    Example: `anamnesis memory search u-1 "favourite food"`
    """
    if not query.strip():
        shell.fail("the query is empty", shell.WRONG_USE)
    at = as_of.astimezone().isoformat() if as_of else None
    asked = {"query": query, "top_k": limit, "expert": expert, "space": space, "as_of": at}
    found = service.request("POST", "users", user, "episodes", "search", json=asked)
    for store in found["degraded"]:
        typer.echo(f"{store} did not answer; the rest was searched.", err=True)
    if as_json:
        shell.print_json(found)
    elif found["items"]:
        columns = {"id": "id", "episode_type": "type", "created_at": "when", "score": "score", "content": "memory"}
        shell.print_table(columns, [{**each, "score": f"{each['score']:.2f}"} for each in found["items"]])
    else:
        typer.echo("Nothing was found.")


@app.command()
@over_http
def edit(
    service: Anamnesis,
    user: shell.OfUser,
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
    expert: shell.OfExpert = "default",
    space: shell.InSpace = None,
) -> None:
    """Change one field or one item of a list in core memory, or a written memory. Everything else stays.

    Example: `anamnesis memory edit u-1 allergies --remove cats`
    """
    if _is_id(what):
        if any((add, remove, replace, by)) or (value is None and importance is None):
            shell.fail("of a memory, its new text or --importance can be given", shell.WRONG_USE)
        change = {"content": value, "importance": importance}
        service.request("PATCH", "users", user, "episodes", what, json=change)
        typer.echo(f"Changed the memory {what}.")
        return
    if importance is not None:
        shell.fail("--importance is for a memory, by its id; fields of core memory have none", shell.WRONG_USE)
    wanted = _change(section, what, value=value, add=add, remove=remove, replace=replace, by=by)
    found = [each for each in core_memory(service, user, expert, space) if each["section"] == section]
    content, version = (found[0]["content"], found[0]["version"]) if found else ({}, 0)
    changed = apply_changes(content, [wanted])
    if changed.unmatched:
        shell.fail(f"no single item of {section}.{what} matches; see: anamnesis memory show {user}")
    service.request(
        "PUT", "users", user, "core-memory", section,
        json={"content": changed.content, "expected_version": version}, params={"expert": expert, "space": space},
    )  # fmt: skip
    now = changed.content.get(what)
    typer.echo(f"{what}: {shell.as_text(now)}" if now is not None else f"{what} is empty now.")


@app.command()
@over_http
def delete(
    service: Anamnesis,
    user: shell.OfUser,
    what: Annotated[str, typer.Argument(help="Id of a memory, or name of a section of core memory.")],
    expert: shell.OfExpert = "default",
    space: shell.InSpace = None,
    yes: shell.Yes = False,
) -> None:
    """Delete a memory, or a section of core memory with its history. Messages stay in their conversation.

    Example: `anamnesis memory delete u-1 01a1fd62-e395-7407-b7b8-45bfb81ca93b --yes`
    """
    if _is_id(what):
        thing, path = f"the memory {what}", ("episodes", what)
    else:
        thing, path = f"the section {what} of core memory, with its history", ("core-memory", what)
    shell.confirm(f"Permanently delete {thing}?", yes=yes)
    service.request("DELETE", "users", user, *path, params={"expert": expert, "space": space})
    typer.echo(f"Deleted {thing}.")


@app.command()
@over_http
def forget(
    service: Anamnesis,
    user: shell.OfUser,
    what: Annotated[str, typer.Argument(help="What to forget, in the user's words.")],
    expert: shell.OfExpert = "default",
    space: shell.InSpace = None,
    as_json: shell.AsJson = False,
) -> None:
    """Forget what a text describes: remove it from core memory and recall. Messages stay in their conversation.

    Example: `anamnesis memory forget u-1 "diabetes"`
    """
    if not what.strip():
        shell.fail("what to forget is empty", shell.WRONG_USE)
    change = forget_text(service, user, expert, space, what)
    if as_json:
        shell.print_json(change)
    else:
        typer.echo(change["summary"])


def forget_text(service: Anamnesis, user: str, expert: str, space: str | None, what: str) -> dict[str, Any]:
    """Have what a text describes forgotten; return what was done."""
    body = {"what": what, "expert": expert, "space": space}
    done: dict[str, Any] = service.request("POST", "users", user, "memory", "forget", json=body)
    return done


def _change(
    section: str,
    field: str,
    *,
    value: str | None,
    add: str | None,
    remove: str | None,
    replace: str | None,
    by: str | None,
) -> ItemChange:
    if sum(each is not None for each in (value, add, remove, replace)) != 1:
        shell.fail("give one of: a value, --add, --remove, --replace with --by", shell.WRONG_USE)
    if (replace is None) != (by is None):
        shell.fail("--replace names the old item and --by the new one; give both", shell.WRONG_USE)
    if add is not None:
        return ItemChange("add", section, field, add)
    if remove is not None:
        return ItemChange("remove", section, field, old=remove)
    if replace is not None:
        return ItemChange("replace", section, field, by, replace)
    return ItemChange("replace", section, field, value)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
