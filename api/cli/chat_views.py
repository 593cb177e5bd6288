"""Views of `anamnesis chat`: conversations, memory and the model."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anamnesis_client import Anamnesis
from api.cli.chat_service import expert as expert_of
from api.cli.chat_service import memory
from api.cli.shell import as_text

_MEMORIES = 10
_LONGEST_LINE = 160
_OFFLINE = "the built-in offline model"


def show_conversations(console: Console, found: Sequence[dict[str, Any]], here: str) -> None:
    """List conversations, newest first; the current one is marked."""
    if not found:
        console.print("[dim]There are no conversations yet.[/]")
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for each in found:
        mark = "*" if each["session_id"] == here else ""
        table.add_row(
            mark, escape(each["session_id"]), each["expert"], _when(each["created_at"]), escape(each["title"])
        )
    console.print(table)


def show_memory(console: Console, service: Anamnesis, user: str, expert: str, space: str | None) -> None:
    """Show core memory and the newest written memories, or those of a space."""
    sections, memories = memory(service, user, expert, space, limit=_MEMORIES)
    if not any(section["content"] for section in sections) and not memories:
        console.print("[dim]Nothing is remembered of you beside what was said in your conversations.[/]")
    for section in sections:
        for name, value in section["content"].items():
            console.print(f"  [bold]{escape(name)}[/]: {escape(as_text(value))}")
    for each in memories:
        console.print(f"  [dim]{_when(each['created_at'])[:10]}[/] {escape(_line(each['content']))}")


def show_model(console: Console, service: Anamnesis, expert: str) -> None:
    """Show which expert and which model answer."""
    model = expert_of(service, expert)["model"] or service.request("GET", "service")["model"] or _OFFLINE
    console.print(f"[dim]The expert {escape(expert)} answers with: {escape(model)}[/]")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


def _when(moment: str) -> str:
    return as_text(moment, "at")
