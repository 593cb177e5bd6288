"""Shows an answer in the terminal as it streams, reconnecting as often as needed."""

import contextlib
import json
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
from rich.console import Console
from rich.markup import escape

from api.cli.chat_service import Refused, refusal_of

_TRIES = 8
_BETWEEN_TRIES_S = 0.5


@dataclass(frozen=True)
class Shown:
    """An answer that was shown, complete or not."""

    turn_id: str
    text: str


def show_answer(console: Console, client: httpx.Client, body: dict[str, Any]) -> Shown | None:
    """Send a message and show its answer; Ctrl-C cancels it, and the answer so far is kept.

    Returns:
        What was shown; None if the message was not accepted.
    """
    before = signal.getsignal(signal.SIGINT)
    answer = _Answer(console, client)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        answer.show(body)
    except KeyboardInterrupt:
        answer.cancel()
        console.print("\n[dim](stopped; what has come of the answer is kept in the conversation)[/]")
    except httpx.ConnectError:
        console.print(f"[red]No service is running at {client.base_url}; start one with: anamnesis serve[/]")
    except httpx.HTTPError as error:
        console.print(f"\n[red]The connection broke: {escape(str(error) or type(error).__name__)}[/]")
    except Refused as error:
        console.print(f"[red]{escape(error.message)}[/]")
    finally:
        answer.stop_waiting()
        signal.signal(signal.SIGINT, before)
    return Shown(answer.turn_id, answer.text) if answer.turn_id else None


class _Answer:
    """One answer."""

    def __init__(self, console: Console, client: httpx.Client) -> None:
        self._console = console
        self._client = client
        self._key = {"Idempotency-Key": uuid4().hex}
        self._seen = 0
        self._begun = False
        self._waiting = console.status("[dim]thinking …[/]", spinner="dots")
        self.turn_id = ""
        self.text = ""

    def show(self, body: dict[str, Any]) -> None:
        """Send the message and show its answer; a broken connection resumes where it broke.

        Raises:
            Refused: the service does not accept the message.
            httpx.HTTPError: the service cannot be reached after all retries.
        """
        self._waiting.start()
        for attempt in range(_TRIES):
            try:
                if self.turn_id:
                    address, headers = f"/api/v1/turns/{self.turn_id}/stream", {"Last-Event-ID": str(self._seen)}
                    ended = self._read("GET", address, headers, None)
                else:
                    ended = self._read("POST", "/api/v1/chat/stream", self._key, body)
                if ended:
                    return
            except httpx.HTTPError:
                if attempt == _TRIES - 1:
                    raise
            time.sleep(_BETWEEN_TRIES_S)

    def cancel(self) -> None:
        """Stop the turn."""
        self.stop_waiting()
        if self.turn_id:
            with contextlib.suppress(httpx.HTTPError):
                self._client.post(f"/api/v1/turns/{self.turn_id}/cancel", timeout=5)

    def stop_waiting(self) -> None:
        """Remove the waiting indicator."""
        self._waiting.stop()

    def _read(self, method: str, address: str, headers: dict[str, str], body: dict[str, Any] | None) -> bool:
        with self._client.stream(method, address, headers=headers, json=body) as response:
            if refusal := refusal_of(response):
                raise refusal
            for line in response.iter_lines():
                if line.startswith("id: "):
                    self._seen = int(line.removeprefix("id: "))
                elif line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    self._show(event["status"], event["content"])
                    if event["status"] in {"done", "error"}:
                        return True
        return False

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
            case "error":
                self.stop_waiting()
                again = " Try again." if content["retryable"] else ""
                begin = "\n" if self._begun else ""
                self._console.print(f"{begin}[red]{escape(content['message'])}{again}[/]", soft_wrap=True)

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
