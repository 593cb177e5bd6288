"""A client that breaks connections, retries with the same key, sends twice, and remembers all that it was told."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import orjson

_GIVE_UP_S = 120.0
_PATIENCE_S = 20.0


@dataclass
class Told:
    """What a client was told of one message, over all its connections."""

    user_id: str
    session_id: str
    message: str
    key: str = field(default_factory=lambda: uuid4().hex)
    turn_ids: set[str] = field(default_factory=set)
    events: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """By number; the last events apart."""
    last: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    connections: int = 0
    resumed: int = 0
    broken: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)
    """Problem documents of requests that were to be sent again."""
    wrong: list[str] = field(default_factory=list)
    """What must never happen, in words."""

    @property
    def tokens(self) -> str:
        """The tokens seen, each once, in order."""
        return "".join(content for _, (status, content) in sorted(self.events.items()) if status == "token")


class Client:
    """Sends one message and does not rest before it has been told how its turn ended."""

    def __init__(self, http: httpx.AsyncClient, addresses: list[str], chance: random.Random) -> None:
        self._http = http
        self._addresses = addresses
        self._chance = chance

    async def send(self, told: Told) -> None:
        """Send it, once or twice at the same time; afterwards `told` holds what came."""
        async with asyncio.timeout(_GIVE_UP_S):
            if self._chance.random() < 0.1:
                await asyncio.gather(self._until_told(told), self._until_told(told))
            else:
                await self._until_told(told)

    async def _until_told(self, told: Told) -> None:
        seen = 0
        while True:
            told.connections += 1
            try:
                if seen and told.turn_ids and self._chance.random() < 0.7:
                    told.resumed += 1
                    (turn_id,) = told.turn_ids
                    path, headers = f"/api/v1/turns/{turn_id}/stream", {"Last-Event-ID": str(seen)}
                    seen, ended = await self._read(told, "GET", path, headers, seen)
                else:
                    headers = {"Idempotency-Key": told.key}
                    seen, ended = await self._read(told, "POST", "/api/v1/chat/stream", headers, 0)
                if ended:
                    return
            except (httpx.HTTPError, TimeoutError):
                told.broken += 1
            await asyncio.sleep(self._chance.uniform(0.05, 0.5))

    async def _read(
        self, told: Told, method: str, path: str, headers: dict[str, str], seen: int
    ) -> tuple[int, bool]:
        """Read until the end or until we hang up; return the last number seen and whether it was the end."""
        body = {"user_id": told.user_id, "session_id": told.session_id, "message": told.message}
        hang_up_after = self._chance.choice((0, 1, 3, 6, 10, 999, 999, 999))
        url = self._chance.choice(self._addresses) + path
        first = seen
        async with (
            asyncio.timeout(_PATIENCE_S),
            self._http.stream(method, url, headers=headers, json=body if method == "POST" else None) as response,
        ):
            if response.status_code in {409, 503}:  # too many wait; the database or the process goes away
                told.refused.append(orjson.loads(await response.aread()))
                return seen, False
            if response.status_code != 200:
                told.wrong.append(f"{method} {response.status_code}: {(await response.aread()).decode()}")
                return seen, True
            number = 0
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    number = int(line.removeprefix("id: "))
                elif line.startswith("data: "):
                    data = orjson.loads(line.removeprefix("data: "))
                    last = self._note(told, number, data["status"], data["content"], seen)
                    seen = number
                    if last:
                        return seen, True
                    if seen - first > hang_up_after:
                        told.broken += 1
                        return seen, False
        return seen, False

    def _note(self, told: Told, number: int, status: str, content: Any, seen: int) -> bool:
        """Remember an event; return whether it is the last."""
        if status in {"done", "error"}:
            told.last.append((status, content))
            told.turn_ids.add(content["turn_id"])
            return True
        if number != seen + 1:
            told.wrong.append(f"event {number} came behind {seen}")
        if told.events.setdefault(number, (status, content)) != (status, content):
            told.wrong.append(f"event {number} was {told.events[number]} and then {(status, content)}")
        if status == "turn":
            told.turn_ids.add(content["turn_id"])
        return False
