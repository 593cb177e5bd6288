"""Shows an answer in the terminal as it streams."""

import contextlib
import signal
import sys
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis, ClientError, TurnFailed
from api.cli.service import told


@dataclass(frozen=True)
class Shown:
    """An answer that was shown, complete or not."""

    turn_id: str
    text: str


def show_answer(console: Console, service: Anamnesis, message: str, options: dict[str, Any]) -> Shown | None:
    """Send a message and show its answer; Ctrl-C cancels it, and the answer so far is kept.

    Args:
        console: the terminal.
        service: which answers.
        message: what is said.
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
