"""What `anamnesis chat` does by itself: its commands, and what it says before anything is sent."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.support.command import run_command
from tests.support.model_server import ModelServer
from tests.support.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.traced]

Chat = Callable[..., Awaitable["subprocess.CompletedProcess[str]"]]


@pytest.fixture
def chat(url: str) -> Chat:
    """Type lines into a chat of the user ada and wait for its end."""

    async def type_lines(*lines: str, options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        typed = "".join(f"{line}\n" for line in lines)
        arguments = ("chat", "--url", url, "--user", "ada", *options)
        return await asyncio.to_thread(run_command, *arguments, variables={}, typed=typed)

    return type_lines


async def _said(client: httpx.AsyncClient, message: str, session: str = "terminal") -> None:
    body = {"user_id": "ada", "session_id": session, "message": message}
    (await client.post("/api/v1/chat", json=body)).raise_for_status()


async def test_commands_reach_neither_the_model_nor_memory(
    chat: Chat, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    done = await chat("/help", "/nonsense", "/quit")
    assert done.returncode == 0, done.stderr
    assert "New conversation “terminal”" in done.stdout
    for command in ("/new", "/help", "/quit"):
        assert command in done.stdout
    assert "There is no command /nonsense; nothing was sent." in done.stdout
    assert model_server.requests == []
    assert (await client.get("/api/v1/conversations")).json()["items"] == []


async def test_conversations_are_begun_and_continued(chat: Chat, client: httpx.AsyncClient) -> None:
    await _said(client, "Hello.")
    done = await chat("/new", "Hello in the second.", "/new terminal", "/new 北京 2026", "Sun!", "/new .")
    assert "The name of a conversation must be 1 to 128 printable characters" in done.stdout
    assert "New conversation “terminal-2”" in done.stdout
    assert "Conversation “terminal” with default, continued." in done.stdout
    names = [each["session_id"] for each in (await client.get("/api/v1/conversations")).json()["items"]]
    assert names == ["北京 2026", "terminal-2", "terminal"]
    resumed = await chat(options=("--resume",))
    assert "Conversation “北京 2026” with default, continued." in resumed.stdout


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--user", "my name "), 2, "--user must be 1 to 128 printable characters"),
        ((), 1, "No service is running at http://127.0.0.1:"),
    ],
)
def test_what_is_wrong_is_said_in_one_human_line(options: tuple[str, ...], code: int, says: str) -> None:
    done = run_command("chat", *options, variables={"ANAMNESIS_PORT": str(free_port())})
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"anamnesis: {says}")
    assert done.stderr.count("\n") == 1
