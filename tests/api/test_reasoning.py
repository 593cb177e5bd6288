"""What a model thinks: shown to clients that show it, and kept from everything else."""

import json
from typing import Any

import httpx
import pytest

from tests.services.llm.streams.families import RESPONSES, frames, response
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

TAGGED = Reply(raw=RESPONSES["Ollama, tags in the text"].raw)
UNOPENED = Reply(
    raw=frames(
        *({"type": "response.output_text.delta", "delta": each} for each in ("Hm, what.\n", "</think>", "\n\nHi")),
        {"type": "response.completed", "response": response()},
    )
)


async def events_of(client: httpx.AsyncClient, message: str) -> list[dict[str, Any]]:
    body = {"user_id": "u-1", "session_id": "s-1", "message": message}
    answered = await client.post("/api/v1/chat/stream", json=body)
    return [json.loads(line[6:]) for line in answered.text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("reply", [TAGGED, UNOPENED, Reply(raw=RESPONSES["LM Studio, bare deltas"].raw)])
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


async def test_openai_clients_get_it_in_a_field_of_its_own(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(TAGGED, TAGGED)
    body = {"model": "default", "user": "u-1", "messages": [{"role": "user", "content": "Hello"}]}

    whole = (await client.post("/v1/chat/completions", json=body)).json()
    streamed = await client.post("/v1/chat/completions", json={**body, "stream": True})

    message = whole["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Hi", "Hm")
    lines = [line[6:] for line in streamed.text.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    assert "".join(each.get("content") or "" for each in deltas) == "Hi"
    assert "".join(each.get("reasoning_content") or "" for each in deltas) == "Hm"
