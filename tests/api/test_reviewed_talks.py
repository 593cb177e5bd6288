"""Long talks of five users, whose model acts and files well: what is known of each at the end."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.filing import Operation, add, asked, filed, waiting
from tests.support.model_server import ModelServer, Received, Reply, ToolCall

pytestmark = pytest.mark.anyio

_TALKS = tomllib.loads((Path(__file__).parent / "data" / "reviewed_talks.toml").read_text(encoding="utf-8"))
_MOST_CALLS = 0.5
"""Calls of the small model for each turn."""
_MOST_WAITING = 3


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server).model_copy(update={"memory_filing_quiet_s": 600})


class _Model:
    """Both models of a user: the one that answers calls the tools that a turn names; the other files a sitting."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self.filing: list[str] = []
        server.default = self._answer

    def act(self, answer: str, call: list[str]) -> None:
        """Answer the next turn, after calling a tool."""
        if not call:
            self._server.script(Reply([answer]), model="large")
            return
        name, *words = call
        arguments: dict[str, Any] = (
            {"what": words[0]} if name == "forget" else dict(zip(("text", "replaces"), words, strict=False))
        )
        if name == "confirm":  # of what waits since the turn before
            told = next(each for each in reversed(self._server.requests) if each.body["model"] == "large")
            (waits,) = re.findall(r"waits as ([0-9a-f-]{36})", str(told.body))
            name, arguments = "remember", {"confirm": waits}
        self._server.script(Reply(tool_calls=[ToolCall(name, arguments)]), Reply([answer]), model="large")

    def _answer(self, request: Received) -> Reply:
        if request.body["model"] != "small":
            return Reply(["Mm."])
        prompt = "\n".join(text for _, text in request.prompt)
        if "quote" not in prompt:
            return Reply(["They talked."])
        return filed(*(operation for each in self.filing for operation in _operations(each, prompt)))


def _operations(line: str, prompt: str) -> list[Operation]:
    """Return what a line of a sitting files: `field | text | quote`, with `=word` the memory that it replaces."""
    field, text, quote = (each.strip() for each in line.split("|"))
    if quote not in prompt.replace("\n> ", " "):
        return []
    if not field.startswith("="):
        return [add(text, quote, field)]
    shown = [each for each in prompt.splitlines() if each.startswith("[m") and field[1:] in each]
    if not shown:
        return []
    memory = shown[0][1:].split("]")[0]
    if text.startswith("until "):
        return [{"op": "end", "id": memory, "date": text.removeprefix("until "), "quote": quote}]
    return [{"op": "replace", "id": memory, "text": text, "quote": quote}]


async def _known(client: httpx.AsyncClient, user: str) -> str:
    items = (await client.get(f"/api/v1/users/{user}/memories", params={"limit": 100})).json()["items"]
    return "\n".join(f"{each['field']}: {each['text']}" for each in items)


async def _play(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, user: str
) -> tuple[int, Counter[str], list[str]]:
    """Say everything that a user says; return the number of turns, what became of the facts, and which failed."""
    model, turns = _Model(model_server), 0
    for number, sitting in enumerate(_TALKS[user]["sittings"]):
        model.filing = sitting["filed"]
        for message, answer, *call in sitting["turns"]:
            model.act(answer, call)
            body = {"user_id": user, "session_id": f"s-{number}", "message": message}
            told = await client.post("/api/v1/chat", json=body)
            assert told.status_code == 200, told.text
            turns += 1
        owner = await services.memory.core.owner(DEFAULT_TENANT, user, "default")
        await services.filing.file(DEFAULT_TENANT, owner.user_id)
    known = await _known(client, user)
    outcome: Counter[str] = Counter()
    failed = []
    for fact in _TALKS[user]["facts"]:
        holds, *never = fact
        became = "wrong" if any(re.search(each, known) for each in never) else ""
        became = became or ("right" if re.search(holds, known) else "missed")
        outcome[became] += 1
        if became != "right":
            failed.append(f"{became}: {fact}")
    return turns, outcome, [*failed, known] if failed else []


async def test_what_is_known_after_long_talks(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turns, facts, failed, waits = 0, Counter[str](), list[str](), 0
    for user in _TALKS:
        played, outcome, missing = await _play(services, client, model_server, user)
        turns += played
        facts += outcome
        failed += missing
        waits += len(await waiting(services, user))
    calls = len(asked(model_server)) / turns
    assert not failed, (turns, facts, waits, calls)
    assert waits <= _MOST_WAITING
    assert calls <= _MOST_CALLS
