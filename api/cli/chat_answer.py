"""The view of `anamnesis chat`: an answer as it streams."""

import contextlib
import signal
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis, ClientError, TurnFailed
from api.cli.service import told


def show_answer(console: Console, service: Anamnesis, message: str, options: dict[str, Any]) -> "_Answer":
    """Send a message and show its answer; Ctrl-C cancels it, and the answer so far is kept.

    Args:
        options: `user`, `session` and other fields of the message.

    Returns:
        What was shown, complete or not; without a `turn_id` if the message was not accepted.
    """
    before = signal.getsignal(signal.SIGINT)
    answer = _Answer(console)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with answer.waiting:
            for event in service.stream(message, **options):
                answer.show(event.status, event.content)
    except KeyboardInterrupt:
        if answer.turn_id:
            with contextlib.suppress(ClientError):
                service.request("POST", "turns", answer.turn_id, "cancel")
        console.print("\n[dim](stopped; what has come of the answer is kept in the conversation)[/]")
    except TurnFailed as failed:
        again = " Try again." if failed.retryable else ""
        begin = "\n" if answer.text else ""
        console.print(f"{begin}[red]{escape(failed.message)}{again}[/]", soft_wrap=True)
    except ClientError as error:
        console.print(f"[red]{escape(told(error))}[/]", soft_wrap=True)
    finally:
        signal.signal(signal.SIGINT, before)
    return answer


class _Answer:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = False
        self.waiting = console.status("[dim]thinking …[/]", spinner="dots")
        self.turn_id = ""
        self.text = ""

    def show(self, status: str, content: Any) -> None:
        """Show an event."""
        match status:
            case "turn":
                self.turn_id = content["turn_id"]
            case "token":
                self._write(content)
            case "tool_call" if not self._begun:
                self.waiting.update(f"[dim]using {escape(content['name'])} …[/]")
            case "done":
                self._end(content)

    def _write(self, text: str) -> None:
        if not self._begun:
            self._begun = True
            self.waiting.stop()
            self._console.print("[bold green]anam[/] ", end="")
        self.text += text
        sys.stdout.write(text)
        sys.stdout.flush()

    def _end(self, done: dict[str, Any]) -> None:
        self.waiting.stop()
        self._console.print()
        for change in done.get("memory_changes", ()):
            self._console.print(f"[dim]{escape(change['summary'])}[/]")
        if measures := (done.get("request_budget") or {}).get("measures"):
            kept = ", ".join(each.replace("_", " ") for each in measures)
            self._console.print(f"[yellow]kept within its budget: {escape(kept)}[/]")
        if names := ", ".join(each for each in dict.fromkeys(done["degraded"]) if each != "request_budget"):
            self._console.print(f"[yellow]answered without: {escape(names)}[/]")
