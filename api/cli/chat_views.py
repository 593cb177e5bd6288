"""What `anamnesis chat` asks the service beside answers, and shows: conversations, memory and the model."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anamnesis_client import Anamnesis, ServiceError
from api.cli.memory import core_memory, written_memories
from api.cli.service import Refused
from api.cli.shell import as_text

Record = dict[str, Any]


def conversations(service: Anamnesis, user: str, *, limit: int | None = None) -> list[Record]:
    """Return the user's conversations, newest first."""
    return list(service.items("conversations", params={"user_id": user}, limit=limit))


def conversation(service: Anamnesis, user: str, session: str) -> Record | None:
    """Return the user's conversation of this name."""
    return next(service.items("conversations", params={"user_id": user, "session_id": session}), None)


def unused_name(service: Anamnesis, user: str) -> str:
    """Return a name that no conversation of the user has yet: `terminal-2` and so on."""
    names = {each["session_id"] for each in conversations(service, user)}
    return next(name for number in range(2, len(names) + 3) if (name := f"terminal-{number}") not in names)


def last_messages(service: Anamnesis, conversation_id: str, count: int) -> list[Record]:
    """Return the last messages of a conversation, oldest first."""
    last: list[Record] = []
    for message in service.items("conversations", conversation_id, "messages"):
        last = [*last, message][-count:]
    return last


def expert_of(service: Anamnesis, name: str) -> Record:
    """Return an expert."""
    try:
        found: Record = service.request("GET", "experts", name)
    except ServiceError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise Refused(f"There is no expert {name}; see: anamnesis experts list", wrong_use=True) from None
        raise
    return found


def memory(
    service: Anamnesis, user: str, expert: str, space: str | None, *, limit: int
) -> tuple[list[Record], list[Record]]:
    """Return the sections of core memory and the newest written memories; none for an unknown user."""
    try:
        sections = core_memory(service, user, expert, space)
        return sections, written_memories(service, user, expert, space, limit)
    except ServiceError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return [], []
        raise


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
