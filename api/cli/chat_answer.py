"""The view of `anamnesis chat`: an answer as it streams, and with `/why` the reasons for it."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anamnesis_client import Anamnesis, ClientError, TurnFailed
from api.cli.service import told
from api.cli.shell import as_text

_LEFT_OUT = 8
"""Maximum items left out that are shown; the rest is counted."""
_LONGEST_LINE = 160

_SECTIONS = {
    "system": "instructions and tools",
    "instructions": "instructions of the application",
    "attached": "attached by the application",
    "core_memory_changes": "core memory, added since",
    "summary": "summary of the conversation",
    "topics": "archived topics",
    "history": "messages of the conversation",
    "days": "records of days",
    "recall": "recalled from earlier",
    "knowledge": "knowledge base",
    "memory_changes": "changes of memory",
    "open_question": "a change that waits for you",
    "speaker": "who says the message",
    "time": "date and time",
    "message": "your message",
}


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


def show_why(console: Console, why: Mapping[str, Any]) -> None:
    """Show the reasons for an answer; *Why?* in the console also shows where each part of it comes from."""
    if not why["sections"]:
        console.print("[dim]There is no report: the answer did not come from a model.[/]")
        return
    if route := why["route"]:
        base = f" with the knowledge base {route['kb_prefix']}" if route.get("kb_prefix") else ""
        reason = route.get("reason") or "as usual"
        console.print(f"Answered by {escape(why['expert'])}{escape(base)}: {escape(reason)}")
    used = sum(each["tokens"] for each in why["sections"] if each["name"] != "message")
    console.print(f"The prompt had about {used} of {why['budget']} tokens, the message not counted:")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    for each in why["sections"]:
        table.add_row(str(each["tokens"]), _section(each["name"]))
    console.print(table)
    shown = [each for each in why["recall"]["items"] if each["shown"]]
    console.print(f"Recalled, of {why['recall']['found']} that were found:" if shown else "Nothing was recalled.")
    for each in shown:
        console.print(f"  {each['likelihood']:.2f} {escape(_recalled(each))}")
    for each in why["sources"]:
        place = f", {each['heading']}" if each["heading"] else ""
        console.print(f"From the knowledge base: {escape(each['document'])}{escape(place)}")
    if lines := list(_left_out(why)):
        console.print("Left out:")
        for line in lines[:_LEFT_OUT]:
            console.print(f"  [dim]{escape(line)}[/]")
        if len(lines) > _LEFT_OUT:
            console.print(f"    [dim]and {len(lines) - _LEFT_OUT} more[/]")


def _left_out(why: Mapping[str, Any]) -> Iterator[str]:
    for each in why["dropped"]:
        yield f"{each['items']} of {_section(each['section'])}: {each['reason']}"
    for name in dict.fromkeys(why["degraded"]):
        yield f"{_section(name)}: it could not be read in time"
    for each in why["recall"]["items"]:
        if not each["shown"]:
            yield f"{each['likelihood']:.2f} {_recalled(each)}: {each['reason'] or 'over the budget'}"


def _recalled(item: Mapping[str, Any]) -> str:
    if not item["text"]:
        return "(not there any more)"
    day = as_text(datetime.fromisoformat(item["created_at"]))[:10]
    return f"[{day}] {_one_line(item['text'])}"


def _section(name: str) -> str:
    return _SECTIONS.get(name, name.replace("_", " "))


def _one_line(text: str) -> str:
    """Return a text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
