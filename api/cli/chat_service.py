"""Requests of `anamnesis chat` to the running service, except for answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any

import httpx
import typer

from api.cli.shell import FAILED, WRONG_USE, fail
from services.platform.settings import KEY_VARIABLE, Settings

AtUrl = Annotated[str | None, typer.Option("--url", help="Address of the service.")]
WithKey = Annotated[
    str | None,
    typer.Option("--key", envvar=KEY_VARIABLE, help="API key or token, where the service asks for one."),
]

_PAGE = 200
_WRITTEN_TYPES = ("preference", "decision", "context", "outcome")


class Refused(Exception):
    """The service or the program refuses something; the message is for the person at the terminal."""

    def __init__(self, message: str, *, wrong_use: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.wrong_use = wrong_use


@contextmanager
def connected(url: str | None, key: str | None, settings: Settings) -> Iterator[httpx.Client]:
    """Yield a client of the running service; its errors end the program with one line.

    Args:
        url: its address; None = as the settings say.
        key: an API key or token, if the service requires one.
        settings: of this machine.
    """
    address = url or f"http://{settings.host}:{settings.port}"
    headers = {"Authorization": f"Bearer {key}"} if key else None
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=httpx.Timeout(10, read=None)) as client:
            yield client
    except httpx.ConnectError:
        fail(f"No service is running at {address}; start one with: anamnesis serve")
    except httpx.HTTPError as error:
        fail(f"The service at {address} does not answer ({str(error) or type(error).__name__}).")
    except Refused as error:
        fail(error.message, WRONG_USE if error.wrong_use else FAILED)


class ChatService:
    """The service over HTTP. Methods raise `Refused`, or `httpx.HTTPError` if it cannot be reached."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def conversations(self, user: str, *, limit: int) -> list[dict[str, Any]]:
        """The user's conversations, newest first."""
        return self._items("/api/v1/conversations", {"user_id": user, "limit": limit})

    def conversation(self, user: str, session: str) -> dict[str, Any] | None:
        """The user's conversation of this name."""
        found = self._items("/api/v1/conversations", {"user_id": user, "session_id": session})
        return found[0] if found else None

    def unused_name(self, user: str) -> str:
        """Return a name that no conversation of the user has yet: `terminal-2` and so on."""
        names = {each["session_id"] for each in self._pages("/api/v1/conversations", {"user_id": user})}
        return next(name for number in range(2, len(names) + 3) if (name := f"terminal-{number}") not in names)

    def last_messages(self, conversation_id: str, count: int) -> list[dict[str, Any]]:
        """The last messages of a conversation, oldest first."""
        last: list[dict[str, Any]] = []
        for message in self._pages(f"/api/v1/conversations/{conversation_id}/messages", {}):
            last = [*last, message][-count:]
        return last

    def expert(self, name: str) -> dict[str, Any]:
        """An expert."""
        response = self.client.get(f"/api/v1/experts/{name}")
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise Refused(f"There is no expert {name}; see: anamnesis experts list", wrong_use=True)
        return content_of(response)

    def why(self, turn_id: str) -> dict[str, Any]:
        """Return what the answer of a turn was based on."""
        return content_of(self.client.get(f"/api/v1/turns/{turn_id}/why"))

    def core_memory(self, user: str, expert: str, space: str | None) -> list[dict[str, Any]]:
        """Return the sections of core memory, or those of a space; none for an unknown user."""
        response = self.client.get(f"/api/v1/users/{user}/core-memory", params=_query(expert=expert, space=space))
        if response.status_code == HTTPStatus.NOT_FOUND:
            return []
        items: list[dict[str, Any]] = content_of(response)["items"]
        return items

    def written_memories(self, user: str, expert: str, space: str | None, *, limit: int) -> list[dict[str, Any]]:
        """Return the newest written memories, newest first."""
        found: list[dict[str, Any]] = []
        for kind in _WRITTEN_TYPES:
            query = _query(expert=expert, space=space, episode_type=kind, limit=limit)
            response = self.client.get(f"/api/v1/users/{user}/episodes", params=query)
            if response.status_code == HTTPStatus.NOT_FOUND:
                return []
            found += content_of(response)["items"]
        return sorted(found, key=lambda each: str(each["created_at"]), reverse=True)[:limit]

    def turns(self, user: str | None, status: str) -> Iterator[dict[str, Any]]:
        """Turns of all users or of one, newest first."""
        yield from self._pages("/api/v1/turns", _query(user_id=user, status=status))

    def replay(self, turn_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Have a turn asked again."""
        return content_of(self.client.post(f"/api/v1/turns/{turn_id}/replay", json=body))

    def forget(self, user: str, expert: str, space: str | None, what: str) -> dict[str, Any]:
        """Have something forgotten; return what was done."""
        body = _query(what=what, expert=expert, space=space)
        return content_of(self.client.post(f"/api/v1/users/{user}/memory/forget", json=body))

    def model(self) -> str:
        """Return what the service reports about its model."""
        ready = self.client.get("/readyz").json()
        return next((str(each["detail"]) for each in ready["dependencies"] if each["name"] == "llm"), "unknown")

    def _items(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = content_of(self.client.get(path, params=query))["items"]
        return items

    def _pages(self, path: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        after: str | None = ""
        while after is not None:
            page = content_of(
                self.client.get(path, params={**query, "limit": _PAGE, **({"after": after} if after else {})})
            )
            yield from page["items"]
            after = page["next"]


def _query(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def refusal_of(response: httpx.Response) -> Refused | None:
    """Return the refusal in a response, in words; None if there is none."""
    if not response.is_error:
        return None
    response.read()
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return Refused(f"The service refuses the key; set {KEY_VARIABLE}, or use --key.")
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"{response.status_code} {response.reason_phrase}; is that the address of Anamnesis?"
    return Refused(detail)


def content_of(response: httpx.Response) -> dict[str, Any]:
    if refusal := refusal_of(response):
        raise refusal
    try:
        content: dict[str, Any] = response.json()
    except ValueError:
        raise Refused("The response is not from Anamnesis; is the address right?") from None
    return content
