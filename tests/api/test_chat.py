import asyncio
import json
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import answer_of, events_of

pytestmark = pytest.mark.untraced

ASK: dict[str, Any] = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


async def _stream(client: httpx.AsyncClient, **values: Any) -> list[Any]:
    async with client.stream("POST", "/api/v1/chat/stream", json={**ASK, **values}) as response:
        assert response.status_code == 200
        lines = [line async for line in response.aiter_lines()]
    return list(events_of(iter(lines)))


async def _ended(client: httpx.AsyncClient, turn_id: str) -> Any:
    for _ in range(1200):
        if (turn := (await client.get(f"/api/v1/turns/{turn_id}")).json())["status"] != "running":
            return turn
        await asyncio.sleep(0.05)
    pytest.fail("the turn does not end")


async def test_a_stream_has_its_headers_its_order_and_one_end(client: httpx.AsyncClient) -> None:
    async with client.stream("POST", "/api/v1/chat/stream", json=ASK) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        events = list(events_of(iter([line async for line in response.aiter_lines()])))
    statuses = [status for _, status, _ in events]
    assert statuses[:2] == ["turn", "route_decision"]
    assert sum(status in {"done", "error"} for status in statuses) == 1
    assert answer_of(events) == "Certainly, here is the answer."
    assert set(events[0][2]) == {"turn_id", "conversation_id", "user_message_id"}
    assert set(events[1][2]) == {"kb_prefix", "worker_name", "confidence", "method", "reason"}
    assert set(events[-1][2]) == {
        "answer",
        "conversation_id",
        "turn_id",
        "message_id",
        "usage",
        "timings",
        "degraded",
        "finish",
        "memory_changes",
        "sources",
    }


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [(Reply(status=401), 502, "llm_unauthorized"), (Reply(["half"], ending="cut"), 502, "llm_stream_broken")],
)
async def test_a_model_that_fails_is_a_problem_in_json_and_an_event_in_a_stream(
    client: httpx.AsyncClient, model_server: ModelServer, reply: Reply, status: int, code: str
) -> None:
    model_server.script(reply, reply)
    problem = await client.post("/api/v1/chat", json=ASK)
    assert (problem.status_code, problem.json()["code"]) == (status, code)
    assert problem.headers["content-type"] == "application/problem+json"
    events = await _stream(client)
    assert events[-1][1] == "error"
    begun = {"answer"} if reply.pieces else set()
    assert set(events[-1][2]) == {"code", "message", "retryable", "turn_id"} | begun
    assert events[-1][2]["code"] == code


async def test_debug_sends_what_each_node_did_and_the_report(client: httpx.AsyncClient) -> None:
    events = await _stream(client, debug=True)
    assert [content["node"] for _, status, content in events if status == "execution_log"] == [
        "route",
        "history",
        "generate_rag",
        "persist",
    ]
    assert events[-1][2]["context_report"]["tokens"]["system"] > 0


@pytest.mark.traced
async def test_images_reach_the_model(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    await client.post(
        "/api/v1/chat", json={**ASK, "images": ["https://example.org/a.png", "data:image/png;base64,AAAA"]}
    )
    parts = model_server.requests[0].body["input"][-1]["content"]
    assert [part["type"] for part in parts] == ["input_text", "input_image", "input_image"]


async def test_over_a_socket_the_events_are_the_same(url: str, client: httpx.AsyncClient) -> None:
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as socket:
        for message in ("Hello", "你好"):
            await socket.send(json.dumps({**ASK, "message": message}))
            frames = [json.loads(await socket.recv())]
            while frames[-1]["status"] not in {"done", "error"}:
                frames.append(json.loads(await socket.recv()))
            assert len({frame["turn_id"] for frame in frames}) == 1
            events = [(frame["id"], frame["status"], frame["content"]) for frame in frames]
            assert answer_of(events) == "Certainly, here is the answer."
    conversation = frames[0]["content"]["conversation_id"]
    page = (await client.get(f"/api/v1/conversations/{conversation}/messages")).json()
    assert [item["content"] for item in page["items"] if item["role"] == "user"] == ["Hello", "你好"]


@pytest.mark.traced
async def test_a_wrong_frame_is_answered_and_the_socket_stays_open(url: str) -> None:
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as socket:
        for sent, code, says in (
            ("not json", "malformed", "not valid JSON"),
            ('{"user_id": "u-1"}', "invalid_input", "message: is required"),
            (json.dumps({**ASK, "expert": "nobody"}), "invalid_input", "expert: there is no expert"),
            (
                '{"user_id": "u-1", "message": "a", "message": "b"}',
                "invalid_input",
                "message: is given more than once",
            ),
        ):
            await socket.send(sent)
            frame = json.loads(await socket.recv())
            assert (frame["status"], frame["content"]["code"]) == ("error", code)
            assert says in frame["content"]["message"]
        await socket.send(json.dumps(ASK))
        assert json.loads(await socket.recv())["status"] == "turn"


async def test_a_socket_that_closes_leaves_its_turn_running(
    url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply(["one ", "two"], gap_s=0.3))
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as socket:
        await socket.send(json.dumps(ASK))
        turn_id = json.loads(await socket.recv())["turn_id"]
    turn = await _ended(client, turn_id)
    assert turn["answer"] == "one two"
