"""What `anamnesis replay` prints of past turns."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.support.command import run_command
from tests.support.model_server import ModelServer, Reply

Replay = Callable[..., Awaitable["subprocess.CompletedProcess[str]"]]


@pytest.fixture
def replay(url: str) -> Replay:
    """Run the command against the application."""

    async def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return await asyncio.to_thread(run_command, "replay", *arguments, "--url", url, variables={})

    return run


async def _ask(client: httpx.AsyncClient, message: str, user: str = "ada") -> str:
    body = {"user_id": user, "session_id": "s-1", "message": message}
    turn_id: str = (await client.post("/api/v1/chat", json=body)).raise_for_status().json()["turn_id"]
    return turn_id


async def test_a_sample_is_compared_and_summed_up(
    replay: Replay, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["A rose is a flower."])
    for message in ("What is a rose?", "And a tulip?"):
        await _ask(client, message)
    forgotten = await _ask(client, "I live in Leith.", user="bob")
    await _ask(client, "Forget that I live in Leith.", user="bob")
    model_server.default = Reply(["Quite another thing."])
    done = await replay("--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    reasons = {each["turn_id"]: each["skipped"] for each in found["turns"]}
    assert "forgotten" in str(reasons[forgotten])
    summary = found["summary"]
    assert (summary["turns"], summary["skipped"], summary["errors"]) == (4, 2, 0)
    assert (summary["same_prompts"], summary["different_answers"]) == (2, 2)

    shown = await replay("--user", "ada", "--model", "other", "--limit", "1")
    assert "And a tulip?" in shown.stdout
    assert "What is a rose?" not in shown.stdout
    assert "1 prompts byte for byte as they were sent" in shown.stdout
    assert model_server.requests[-1].body["model"] == "other"
    one = await replay(next(turn for turn, skipped in reasons.items() if skipped is None))
    assert "byte for byte as it was sent" in one.stdout
