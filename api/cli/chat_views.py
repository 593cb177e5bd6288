"""What `anamnesis chat` shows: an answer as it streams, conversations, memory and the model."""

import contextlib
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anamnesis_client import Anamnesis, ClientError, ServiceError, TurnFailed
from api.cli.chat_why import one_line
from api.cli.memory import core_memory, written_memories
from api.cli.service import Refused, told
from api.cli.shell import as_text


@dataclass(frozen=True)
class Shown:
    """An answer that was shown, complete or not."""

    turn_id: str
    text: str


def show_answer(console: Console, service: Anamnesis, message: str, options: dict[str, Any]) -> Shown | None:
    """Send a message and show its answer; Ctrl-C cancels it, and the answer so far is kept.

    Args:
        options: `user`, `session` and other fields of the message.

    Returns:
        What was shown; None if the message was not accepted.
    """
    before = signal.getsignal(signal.SIGINT)
    answer = _Answer(console, service)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        answer.show(message, options)
    except KeyboardInterrupt:
        answer.cancel()
        console.print("\n[dim](stopped; what has come of the answer is kept in the conversation)[/]")
    except TurnFailed as failed:
        answer.fail(failed)
    except ClientError as error:
        console.print(f"[red]{escape(told(error))}[/]", soft_wrap=True)
    finally:
        answer.stop_waiting()
        signal.signal(signal.SIGINT, before)
    return Shown(answer.turn_id, answer.text) if answer.turn_id else None


class _Answer:
    """One answer."""

    def __init__(self, console: Console, service: Anamnesis) -> None:
        self._console = console
        self._service = service
        self._begun = False
        self._waiting = console.status("[dim]thinking …[/]", spinner="dots")
        self.turn_id = ""
        self.text = ""

    def show(self, message: str, options: dict[str, Any]) -> None:
        """Send the message and show its answer.

        Raises:
            ClientError: the service does not accept the message, the turn failed, or the service went away.
        """
        self._waiting.start()
        for event in self._service.stream(message, **options):
            self._show(event.status, event.content)

    def cancel(self) -> None:
        """Stop the turn."""
        self.stop_waiting()
        if self.turn_id:
            with contextlib.suppress(ClientError):
                self._service.request("POST", "turns", self.turn_id, "cancel")

    def fail(self, failed: TurnFailed) -> None:
        """Say why the turn failed."""
        self.stop_waiting()
        again = " Try again." if failed.retryable else ""
        begin = "\n" if self._begun else ""
        self._console.print(f"{begin}[red]{escape(failed.message)}{again}[/]", soft_wrap=True)

    def stop_waiting(self) -> None:
        """Remove the waiting indicator."""
        self._waiting.stop()

    def _show(self, status: str, content: Any) -> None:
        match status:
            case "turn":
                self.turn_id = content["turn_id"]
            case "token":
                self._write(content)
            case "retraction":
                self.text = self.text.removesuffix(content)
                self._console.print("\n[dim](until here the model was thinking)[/]")
            case "tool_call" if not self._begun:
                self._waiting.update(f"[dim]using {escape(content['name'])} …[/]")
            case "done":
                self._end(content)

    def _write(self, text: str) -> None:
        if not self._begun:
            self._begun = True
            self.stop_waiting()
            self._console.print("[bold green]anam[/] ", end="")
        self.text += text
        sys.stdout.write(text)
        sys.stdout.flush()

    def _end(self, done: dict[str, Any]) -> None:
        self.stop_waiting()
        self._console.print()
        for change in done.get("memory_changes", ()):
            self._console.print(f"[dim]{escape(change['summary'])}[/]")
        if measures := (done.get("request_budget") or {}).get("measures"):
            kept = ", ".join(each.replace("_", " ") for each in measures)
            self._console.print(f"[yellow]kept within its budget: {escape(kept)}[/]")
        if names := ", ".join(each for each in dict.fromkeys(done["degraded"]) if each != "request_budget"):
            self._console.print(f"[yellow]answered without: {escape(names)}[/]")


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
            raise Refused(f"There is no expert {name}; see: anamnesis api GET experts", wrong_use=True) from None
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
            mark,
            escape(each["session_id"]),
            each["expert"],
            as_text(each["created_at"], "at"),
            escape(each["title"]),
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
        console.print(f"  [dim]{as_text(each['created_at'], 'at')[:10]}[/] {escape(one_line(each['content']))}")


def show_model(console: Console, service: Anamnesis, expert: str) -> None:
    """Show which expert and which model answer."""
    model = expert_of(service, expert)["model"] or service.request("GET", "service")["model"] or _OFFLINE
    console.print(f"[dim]The expert {escape(expert)} answers with: {escape(model)}[/]")
