"""Two clients of one conversation, in any order of steps: it is stored, prompted and recalled as they show it."""

import itertools
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openai import AsyncOpenAI
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.openai_clients import Chat

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_KINDS = ("dog", "cat", "parrot", "horse", "rabbit", "hamster", "goat", "canary", "tortoise", "ferret")
_STORED = """
SELECT m.role, m.content FROM messages m JOIN conversations c ON c.id = m.conversation_id
JOIN users u ON u.id = c.user_id
WHERE m.tenant_id = %(tenant_id)s AND u.external_id = %(user)s AND c.session_key = 'shared'
  AND m.branch_id IS NULL
ORDER BY m.created_at, m.id
"""
_ACTIONS = st.sampled_from(["append", "append", "edit", "regenerate", "truncate", "stale", "elsewhere", "again"])
_STEPS = st.lists(st.tuples(st.integers(0, 1), _ACTIONS, st.integers(0, 9)), min_size=2, max_size=8)


class SharedConversation:
    """Two clients that show the same conversation, and what it has to be: always what was shown last."""

    def __init__(self, sdk: AsyncOpenAI, services: Services, model_server: ModelServer, *, imports: bool) -> None:
        self.user = f"u-{uuid4().hex}"
        self._services = services
        self._model_server = model_server
        self._clients = [Chat(sdk, {"X-Session-Id": "shared"}, self.user) for _ in range(2)]
        self._sdk = sdk
        self._names = (f"{letter}{number:02}xo" for number in range(100) for letter in "BDFGKLMNPRSTVZ")
        self._count = itertools.count()
        self.said: dict[str, str] = {}
        """Kind of each animal by its name."""
        if imports:
            for client in self._clients:
                client.messages = self._pair("elsewhere")

    async def step(self, who: int, action: str, place: int) -> None:
        """Take a step and compare: a client's history and message are the conversation from then on."""
        client, hidden = self._clients[who], list[dict[str, Any]]()
        if action != "stale":  # the page is loaded again
            client.messages = [{"role": role, "content": text} for role, text in await self.stored()] or list(
                client.messages
            )
        turns = len(client.messages) // 2
        text = self._statement()
        match action:
            case "edit" | "again" if turns > 1:
                at = 2 * (1 + place % (turns - 1))
                text = text if action == "edit" else client.messages[at]["content"]
                client.back_to(at)
            case "regenerate" if turns:
                client.back_to(2 * turns - 1)
                text = client.messages.pop()["content"]
            case "truncate" if turns > 1:
                kept = 2 * (1 + place % (turns - 1))
                hidden, client.messages = client.messages[:-kept], client.messages[-kept:]
            case "elsewhere" if turns:
                client.messages += self._pair(f"elsewhere {next(self._count)}")
        if not client.messages:  # a message alone goes on, unless it is all that there is
            stored = await self.stored()
            if [content for _, content in stored[::2]] != [text]:
                hidden = [{"role": role, "content": content} for role, content in stored]
        before = [*hidden, *client.messages]
        await client.say(text)
        client.messages = [*before, *client.messages[-2:]]
        assert await self.stored() == client.pairs
        assert self._model_server.requests[-1].said == [each["content"] for each in client.messages[:-1]]

    async def stored(self) -> list[tuple[str, str]]:
        """Role and text of the conversation as it goes on."""
        values = {"tenant_id": DEFAULT_TENANT, "user": self.user}
        rows: list[Any] = await self._services.database.fetch(DEFAULT_TENANT, _STORED, values, tuple_row)
        return [(row[0], row[1]) for row in rows]

    async def check_recall(self) -> None:
        """Ask elsewhere for the newest animal, if one is left: it is recalled, and none that was put aside is."""
        course = str(await self.stored())
        newest = next((name for name in reversed(self.said) if name in course), "")
        other = Chat(self._sdk, {"X-Session-Id": "other"}, self.user)
        await other.say(f"What is my {self.said.get(newest, 'dog')} called?")
        prompt = str(self._model_server.requests[-1].body)
        assert newest in prompt
        assert [name for name in self.said if name in prompt and name not in course] == []

    def _statement(self) -> str:
        name = next(self._names)
        self.said[name] = _KINDS[len(self.said) % len(_KINDS)]
        return f"My {self.said[name]} is called {name}."

    def _pair(self, answer: str) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": f"Please note this for {answer}."},
            {"role": "assistant", "content": f"Noted {answer}."},
        ]


async def _play(
    sdk: AsyncOpenAI,
    services: Services,
    model_server: ModelServer,
    steps: Sequence[tuple[int, str, int]],
    *,
    imports: bool,
) -> None:
    answers = itertools.count(1)

    def answer(_: Received) -> Reply:
        return Reply([f"Answer {next(answers)}."])

    model_server.default = answer
    conversation = SharedConversation(sdk, services, model_server, imports=imports)
    for step in steps:
        await conversation.step(*step)
    await conversation.check_recall()


@given(steps=_STEPS, imports=st.booleans())
@hypothesis_settings(max_examples=6, database=None)
async def test_the_conversation_is_what_a_client_showed_last(
    sdk: AsyncOpenAI,
    services: Services,
    model_server: ModelServer,
    steps: Sequence[tuple[int, str, int]],
    imports: bool,
) -> None:
    await _play(sdk, services, model_server, steps, imports=imports)


@pytest.mark.soak
@given(steps=_STEPS, imports=st.booleans())
@hypothesis_settings(max_examples=150, database=None)
async def test_the_conversation_is_what_a_client_showed_last_over_many_sequences(
    sdk: AsyncOpenAI,
    services: Services,
    model_server: ModelServer,
    steps: Sequence[tuple[int, str, int]],
    imports: bool,
) -> None:
    await _play(sdk, services, model_server, steps, imports=imports)
