"""LangGraph Studio's server over our graph, driven by the official client."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from langgraph_sdk import get_client

from services.platform import child_process
from tests.support.folders import new_folder
from tests.support.ports import free_port, wait_for_port

pytestmark = [pytest.mark.process, pytest.mark.untraced]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def studio() -> Iterator[str]:
    """`langgraph dev` as `make studio` starts it in a fresh checkout, on default settings."""
    port = free_port()
    with new_folder() as folder:
        for name in ("api", "graph", "nodes", "services", "state", "pyproject.toml"):
            (Path(folder) / name).symlink_to(ROOT / name)
        shutil.copy(ROOT / "langgraph.json", folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANAMNESIS_")}
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("langgraph")),
                *("dev", "--no-browser", "--no-reload", "--port", str(port)),
            ],
            env={**environment, "LANGSMITH_TRACING": "false"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        try:
            wait_for_port(port, 60)
            yield f"http://127.0.0.1:{port}"
        finally:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert child_process.wait_until(lambda: not any(c.is_running() for c in children), seconds=60)


async def _run(client: Any, thread_id: str, message: str, **asked: Any) -> dict[str, Any]:
    updates: dict[str, Any] = {}
    async for part in client.runs.stream(
        thread_id, "anamnesis", input={"message": message, **asked}, stream_mode="updates"
    ):
        assert part.event != "error", part.data
        if part.event == "updates":
            updates.update({node: update["turn"] for node, update in part.data.items()})
    return updates


async def test_a_thread_runs_the_graph_and_shows_every_nodes_update(studio: str) -> None:
    async with get_client(url=studio) as client:
        (assistant,) = await client.assistants.search()
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
        assert schemas["input_schema"]
        assert schemas["context_schema"]
        assert "message" in schemas["input_schema"]["properties"]
        assert set(schemas["context_schema"]["properties"]) >= {"tenant_id", "user_id"}

        thread = await client.threads.create()
        updates = await _run(client, thread["thread_id"], "My dog is called Bruno.")
        assert list(updates) == ["route", "history", "generate_rag", "persist"]
        assert updates["route"]["route_decision"]["worker_name"] == "general"
        assert updates["history"]["history"] == []

        updates = await _run(
            client, thread["thread_id"], "What is my dog called?", timezone="Europe/Berlin", debug=True
        )
        assert updates["history"]["history"][0]["content"] == "My dog is called Bruno."
        assert "Bruno" in updates["generate_rag"]["answer"]
        stored: Any = await client.threads.get_state(thread["thread_id"])
        values = stored["values"]["turn"]
        assert values["answer"] == updates["generate_rag"]["answer"]
        assert len(values["messages"]) == 1
        assert len(values["execution_logs"]) == 4
        assert values["usage"]["model_calls"] == 1

        # As chat front ends send it.
        given: dict[str, Any] = {
            "messages": [{"type": "human", "content": "What is my dog called, again?", "id": "m-1"}]
        }
        parts = client.runs.stream(
            thread["thread_id"], "anamnesis", input=given, stream_mode=["values", "messages-tuple"]
        )
        shown = [part.data["messages"] async for part in parts if part.event == "values"][-1]
        assert [each["type"] for each in shown] == ["human", "ai"] * 3
        assert shown[-2]["id"] == "m-1"
        assert "Bruno" in shown[-1]["content"]

        other = await client.threads.create()
        assert (await _run(client, other["thread_id"], "What is my dog called?"))["history"]["history"] == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "message must be a text of 1 to 1000000 characters"),
        ({"text": "Hello"}, "text is not known here"),
        ({"message": "Hello", "user_id": ".."}, "user_id must be 1 to 128 printable characters"),
        ({"messages": [{"type": "ai", "content": "Hello"}]}, "the last of messages must be the user's"),
        ("Hello", 'an input is an object such as {"message": "Hello"}'),
    ],
)
async def test_a_wrong_input_gets_a_sentence(studio: str, given: Any, told: str) -> None:
    async with get_client(url=studio) as client:
        thread = await client.threads.create()
        parts = client.runs.stream(thread["thread_id"], "anamnesis", input=given, stream_mode="updates")
        (failed,) = [part.data async for part in parts if part.event == "error"]
    assert told in failed["message"]


async def test_pages_of_other_sites_may_not_read_its_answers(studio: str) -> None:
    async with httpx.AsyncClient(base_url=studio) as client:
        allowed = {
            origin: (await client.get("/ok", headers={"Origin": origin})).headers.get(
                "access-control-allow-origin"
            )
            for origin in ("https://smith.langchain.com", "http://evil.example")
        }
        asked = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type, x-api-key",
        }
        chat = {"Origin": "http://localhost:3000", **asked}
        preflight = await client.options("/threads", headers=chat)
    assert allowed == {"https://smith.langchain.com": "https://smith.langchain.com", "http://evil.example": None}
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, chat["Origin"])
