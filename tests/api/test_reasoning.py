"""What a model thinks: shown to clients that show it, and kept from everything else."""

import json
from typing import Any

import httpx
import pytest

from tests.services.llm.streams.families import RESPONSES, frames, response
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

TAGGED = Reply(
    raw=frames(
        *({"type": "response.output_text.delta", "delta": text} for text in ("<think>Hm</think>", "Hi")),
        {"type": "response.completed", "response": response()},
    )
)


async def events_of(client: httpx.AsyncClient, message: str) -> list[dict[str, Any]]:
    body = {"user_id": "u-1", "session_id": "s-1", "message": message}
    answered = await client.post("/api/v1/chat/stream", json=body)
    return [json.loads(line[6:]) for line in answered.text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("reply", [TAGGED, Reply(raw=RESPONSES["LM Studio, bare deltas"].raw)])
async def test_reasoning_is_an_event_of_its_own_and_in_no_later_prompt(
    reply: Reply, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(reply)

    events = await events_of(client, "Hello, who are you?")

    texts: dict[str, str] = {}
    for event in events:
        if event["status"] in {"token", "reasoning", "retraction"}:
            texts[event["status"]] = texts.get(event["status"], "") + event["content"]
    assert texts["reasoning"].startswith("Hm")
    assert texts["token"].removeprefix(texts.get("retraction", "")) == "Hi"
    done = events[-1]["content"]
    assert done["answer"] == "Hi"
    assert done["usage"]["estimated"] is True
    stored = await client.get(f"/api/v1/conversations/{done['conversation_id']}/messages")
    assert "Hm" not in stored.text
    await events_of(client, "And what did you say just now?")
    assert "Hm" not in json.dumps(model_server.requests[-1].body)
