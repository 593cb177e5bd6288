"""`anamnesis memory`: show, search and forget what is remembered about a user."""

from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis
from api.cli import shell
from api.cli.service import over_http

app = shell.command_group("Show, search and forget what is remembered of a user.")

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
    whose = {"expert": expert, "space": space, "as_of": at}
    sections = list(service.items("users", user, "core-memory", params=whose))
    episodes = _written(service, user, whose, limit, space)
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


def _written(
    service: Anamnesis, user: str, whose: dict[str, Any], limit: int, space: str | None
) -> list[dict[str, Any]]:
    """Return the newest written memories, or those of a space, newest first."""
    found: list[dict[str, Any]] = []
    for kind in _WRITTEN_TYPES:
        query = {**whose, "archived": False, "episode_type": kind}
        of_kind = service.items("users", user, "episodes", params=query)
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
    body = {"what": what, "expert": expert, "space": space}
    change = service.request("POST", "users", user, "memory", "forget", json=body)
    if as_json:
        shell.print_json(change)
    else:
        typer.echo(change["summary"])
