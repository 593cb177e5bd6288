"""`anamnesis chat`: talk to the running service in the terminal."""

import contextlib
import getpass
import json
import signal
import sys
import time
from typing import Annotated, Any
from uuid import uuid4

import httpx
import typer
from rich.console import Console
from rich.markup import escape

from api.cli.shell import fail, settings_or_exit
from services.platform.settings import KEY_VARIABLE

_SHOWN_ON_RETURN = 6
_TRIES = 8
_BETWEEN_TRIES_S = 0.5

console = Console()


def chat(
    session: Annotated[str, typer.Option(help="Name of the conversation.")] = "terminal",
    user: Annotated[str | None, typer.Option(help="Who you are; your login name by default.")] = None,
    expert: Annotated[str | None, typer.Option(help="Expert of a new conversation.")] = None,
    url: Annotated[str | None, typer.Option(help="Address of the service.")] = None,
    key: Annotated[
        str | None, typer.Option(envvar=KEY_VARIABLE, help="API key or token, where the service asks for one.")
    ] = None,
) -> None:
    """Talk to the running service. Ctrl-C stops an answer; Ctrl-D or /quit ends.

    Example: `anamnesis chat --session holiday`
    """
    settings = settings_or_exit()
    address = url or f"http://{settings.host}:{settings.port}"
    request = {"user_id": user or getpass.getuser(), "session_id": session, "expert": expert}
    headers = {"Authorization": f"Bearer {key}"} if key else None
    with httpx.Client(base_url=address, headers=headers, timeout=httpx.Timeout(10, read=None)) as client:
        try:
            _show_history(client, request)
            _talk(client, request)
        except httpx.ConnectError:
            fail(f"nothing answers at {address}; start the service with: make run")


def _talk(client: httpx.Client, request: dict[str, Any]) -> None:
    while True:
        try:
            message = console.input("[bold cyan]you[/]  ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if message in {"/quit", "/exit"}:
            return
        if message:
            _ask(client, {**request, "message": message})


def _show_history(client: httpx.Client, request: dict[str, Any]) -> None:
    """The end of this conversation, if there is one."""
    found = client.get(
        "/api/v1/conversations", params={"user_id": request["user_id"], "session_id": request["session_id"]}
    )
    _check(found)
    if not (conversations := found.json()["items"]):
        console.print(f"[dim]A new conversation, {escape(request['session_id'])}. Ctrl-D ends it.[/]")
        return
    last: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        parameters = {"limit": "200"} | ({"after": after} if after else {})
        page = client.get(f"/api/v1/conversations/{conversations[0]['id']}/messages", params=parameters).json()
        last, after = [*last, *page["items"]][-_SHOWN_ON_RETURN:], page["next"]
    for message in last:
        name = "you " if message["role"] == "user" else "anam"
        unfinished = "" if message["completed"] else " [dim](broke off)[/]"
        console.print(f"[dim]{name} {escape(message['content'])}[/]{unfinished}")


def _ask(client: httpx.Client, body: dict[str, Any]) -> None:
    """Show the answer as it comes. Ctrl-C cancels it; what there is of it is kept."""
    console.print("[bold green]anam[/] ", end="")
    before = signal.getsignal(signal.SIGINT)
    answer = _Answer(client)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        answer.show(body)
    except KeyboardInterrupt:
        answer.cancel()
        console.print("\n[dim](stopped; what there is of the answer is kept in the conversation)[/]")
    except httpx.HTTPError as error:
        console.print(f"\n[red]The connection broke: {escape(str(error) or type(error).__name__)}[/]")
    finally:
        signal.signal(signal.SIGINT, before)


class _Answer:
    """One answer as it comes, over as many connections as it takes."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._key = {"Idempotency-Key": uuid4().hex}
        self._turn_id = ""
        self._seen = 0

    def show(self, body: dict[str, Any]) -> None:
        """Send the message and show its answer; a connection that breaks is taken up where it broke."""
        for attempt in range(_TRIES):
            try:
                if self._turn_id:
                    address, headers = f"/api/v1/turns/{self._turn_id}/stream", {"Last-Event-ID": str(self._seen)}
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
        if self._turn_id:
            with contextlib.suppress(httpx.HTTPError):
                self._client.post(f"/api/v1/turns/{self._turn_id}/cancel", timeout=5)

    def _read(self, method: str, address: str, headers: dict[str, str], body: dict[str, Any] | None) -> bool:
        with self._client.stream(method, address, headers=headers, json=body) as response:
            _check(response)
            for line in response.iter_lines():
                if line.startswith("id: "):
                    self._seen = int(line.removeprefix("id: "))
                elif line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    if event["status"] == "turn":
                        self._turn_id = event["content"]["turn_id"]
                    _show(event)
                    if event["status"] in {"done", "error"}:
                        return True
        return False


def _show(event: dict[str, Any]) -> None:
    content = event["content"]
    match event["status"]:
        case "token":
            sys.stdout.write(content)
            sys.stdout.flush()
        case "tool_call":
            console.print(f"[dim]({escape(content['name'])} …)[/] ", end="")
        case "done":
            console.print()
            if content["degraded"]:
                console.print(f"[yellow]without: {escape(', '.join(content['degraded']))}[/]")
        case "error":
            again = " Try again." if content["retryable"] else ""
            console.print(f"\n[red]{escape(content['message'])}{again}[/]")


def _check(response: httpx.Response) -> None:
    if response.is_error:
        response.read()
        fail(response.json()["detail"])
