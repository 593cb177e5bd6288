"""Clients of `/v1`, and what tests look at afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT

_CONTENTS = """
SELECT role, content FROM messages WHERE tenant_id = %(tenant_id)s AND branch_id IS NULL
ORDER BY conversation_id, created_at, id
"""


async def contents(services: Services) -> list[tuple[str, str]]:
    """Return role and text of every stored message that is on no branch that was put aside."""
    rows: list[Any] = await services.database.fetch(
        DEFAULT_TENANT, _CONTENTS, {"tenant_id": DEFAULT_TENANT}, tuple_row
    )
    return [(row[0], row[1]) for row in rows]


class Chat:
    """A client that sends the whole conversation with each message."""

    def __init__(self, sdk: Any, headers: Mapping[str, str], user: str = "u-1") -> None:
        self._sdk = sdk
        self._headers = headers
        self._user = user
        self.messages: list[dict[str, Any]] = []

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Role and text of each message."""
        return [(each["role"], each["content"]) for each in self.messages]

    async def say(self, text: str) -> None:
        """Add a message and its answer."""
        self.messages.append({"role": "user", "content": text})
        await self._ask()

    async def regenerate(self) -> None:
        """Ask for another answer to the last message."""
        self.messages.pop()
        await self._ask()

    def back_to(self, count: int) -> None:
        """Keep only this many messages."""
        del self.messages[count:]

    async def _ask(self) -> None:
        answer = await self._sdk.chat.completions.create(
            model="default", messages=self.messages, user=self._user, extra_headers=self._headers
        )
        self.messages.append({"role": "assistant", "content": answer.choices[0].message.content})


@dataclass(frozen=True)
class Named:
    """Open WebUI's ids of a message and its answer."""

    user_message: str
    answer: str


class OpenWebUi:
    """Open WebUI with its ids in headers. It sends no history, so only the ids decide."""

    def __init__(self, sdk: Any) -> None:
        self._sdk = sdk
        self._chat = str(uuid4())

    async def say(
        self, text: str, *, parent: Named | str, user_message: str | None = None, answer: str | None = None
    ) -> Named:
        """Send a message that follows an answer; with `user_message`, one that was sent before."""
        named = Named(user_message or str(uuid4()), answer or str(uuid4()))
        headers = {
            "X-OpenWebUI-Chat-Id": self._chat,
            "X-OpenWebUI-Message-Id": named.answer,
            "X-OpenWebUI-User-Message-Id": named.user_message,
            "X-OpenWebUI-User-Message-Parent-Id": parent.answer if isinstance(parent, Named) else parent,
            "X-OpenWebUI-Task": "",
            "X-OpenWebUI-User-Id": "u-1",
        }
        said = [{"role": "user", "content": text}]
        await self._sdk.chat.completions.create(model="default", messages=said, extra_headers=headers)
        return named
