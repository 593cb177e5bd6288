"""What a model thinks: shown to clients that show it, and kept from everything else."""

import json
from typing import Any

import httpx
import pytest

from tests.api.openai.conftest import sdk as sdk  # noqa: PLC0414 — a fixture
from tests.services.llm.streams.families import RESPONSES, frames, response
from tests.support.model_server import ModelServer, Reply

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
        if event["status"] in {"token", "reasoning"}:
            texts[event["status"]] = texts.get(event["status"], "") + event["content"]
    assert texts["reasoning"].startswith("Hm")
    assert texts["token"] == "Hi"
    done = events[-1]["content"]
    assert done["answer"] == "Hi"
    assert done["usage"]["estimated"] is True
    stored = await client.get(f"/api/v1/conversations/{done['conversation_id']}/messages")
    assert "Hm" not in stored.text
    await events_of(client, "And what did you say just now?")
    assert "Hm" not in json.dumps(model_server.requests[-1].body)


@pytest.mark.parametrize(
    "text",
    [
        "模板里，思考部分写完以后会输出一行：\n</think>\n\n这一行之后才是给用户看的回答。",
        "用户可能失恋了，先安慰一下。\n</think>\n\n推荐《星际穿越》。",
        "<think> 是模板里思考部分的开头。",
    ],
)
async def test_clients_see_what_is_stored_and_shown_to_the_model_later(
    text: str, client: httpx.AsyncClient, sdk: Any, model_server: ModelServer
) -> None:
    model_server.script(Reply([text[place : place + 7] for place in range(0, len(text), 7)]))
    asked = {"model": "default", "messages": [{"role": "user", "content": "你好"}], "user": "u-1"}
    raw = await sdk.chat.completions.with_raw_response.create(**asked, stream=True)
    seen = "".join([chunk.choices[0].delta.content or "" async for chunk in raw.parse()])
    assert seen == text
    turn = (await client.get(f"/api/v1/turns/{raw.headers['X-Turn-Id']}")).json()
    assert turn["answer"] == seen
    messages = [
        *asked["messages"],
        {"role": "assistant", "content": seen},
        {"role": "user", "content": "然后呢？"},
    ]
    await sdk.chat.completions.create(model="default", messages=messages, user="u-1")
    assert any(role == "assistant" and said[-9:] == text[-9:] for role, said in model_server.requests[-1].prompt)


async def test_a_call_in_the_text_runs_its_tool_and_is_nowhere_to_be_seen(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    call = '<tool_call>\n{"name": "search_memory", "arguments": {"query": "Tokyo"}}\n</tool_call>'
    delta = {"type": "response.output_text.delta", "delta": call}
    done = {"type": "response.completed", "response": response()}
    model_server.script(Reply(raw=frames(delta, done)), Reply(["It is noon."]))

    events = await events_of(client, "And what is the hour in Tokyo?")

    assert [event["content"]["name"] for event in events if event["status"] == "tool_call"] == ["search_memory"]
    assert events[-1]["content"]["answer"] == "It is noon."
    assert "tool_call>" not in json.dumps(events)
    assert "tool_call>" not in json.dumps(model_server.requests[-1].body)
