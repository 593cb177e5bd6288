"""Front ends against the application: the AI SDK's stream of UI messages, and AG-UI."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from services.bootstrap import Services
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.openai_clients import contents

UI, AG_UI = "/api/v1/ui/chat", "/api/v1/ui/ag-ui"
EVENT: TypeAdapter[Any] = TypeAdapter(Event)
CLOCK = ToolCall("get_current_time", {})


def ui(*said: str, chat: str = "c-1", user: str = "u-1", **more: Any) -> dict[str, Any]:
    """A request of the AI SDK's chat: what the user and the model have said in turn."""
    messages = [
        {
            "id": f"m-{number}",
            "role": "assistant" if number % 2 else "user",
            "parts": [{"type": "text", "text": text}],
        }
        for number, text in enumerate(said)
    ]
    return {"id": chat, "user": user, "trigger": "submit-message", "messages": messages, **more}


def run(*said: str, run_id: str = "run-1", thread: str = "t-1", user: str | None = "u-1") -> dict[str, Any]:
    """AG-UI's input of a run."""
    messages = [
        {"id": f"m-{number}", "role": "assistant" if number % 2 else "user", "content": text}
        for number, text in enumerate(said)
    ]
    props = {"user": user} if user else {}
    usual = {"state": {}, "tools": [], "context": [], "forwardedProps": props}
    return {"threadId": thread, "runId": run_id, "messages": messages, **usual}


async def lines(response: httpx.Response) -> AsyncIterator[tuple[int, str]]:
    """Number and data of each frame."""
    number = 0
    async for line in response.aiter_lines():
        if line.startswith("id:"):
            number = int(line[3:])
        elif line.startswith("data:"):
            yield number, line[5:].strip()


async def told(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], **headers: str
) -> list[tuple[int, dict[str, Any]]]:
    """The parts of an answer, with the numbers of their events."""
    async with client.stream("POST", path, json=body, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        return [(number, json.loads(data)) async for number, data in lines(response) if data != "[DONE]"]


def kinds(parts: list[tuple[int, dict[str, Any]]]) -> list[str]:
    """The types of the parts, those of text once."""
    found: list[str] = []
    for _, part in parts:
        if not found or found[-1] != part["type"]:
            found.append(part["type"])
    return found


async def test_a_chat_of_the_ai_sdk_shows_tools_text_and_what_was_done(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply(tool_calls=[CLOCK]), Reply(["It is ", "noon."]))

    async with client.stream("POST", UI, json=ui("How late is it by your clock now, please?")) as response:
        frames = [data async for _, data in lines(response)]

    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert response.headers["X-Session-Id"] == "c-1"
    assert frames[-1] == "[DONE]"
    parts = [(0, json.loads(frame)) for frame in frames[:-1]]
    expected = ["start", "start-step", "tool-input-available", "tool-output-available", "text-start", "text-delta"]
    assert kinds(parts) == [*expected, "text-end", "finish-step", "finish"]
    called = next(part for _, part in parts if part["type"] == "tool-input-available")
    assert (called["toolName"], called["providerExecuted"], called["dynamic"]) == ("get_current_time", True, True)
    assert "".join(part["delta"] for _, part in parts if part["type"] == "text-delta") == "It is noon."
    assert parts[-1][1]["messageMetadata"]["usage"]["output_tokens"] >= 0


async def test_every_event_of_ag_ui_is_one_of_its_package(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply(tool_calls=[CLOCK]), Reply(["It is ", "noon."]), Reply(status=401))

    parts = await told(client, AG_UI, run("How late is it by your clock now, please?"))
    failed = await told(client, AG_UI, run("Hello", run_id="run-2", thread="t-2"))

    for _, part in parts + failed:
        EVENT.validate_python(part)
    text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    tool = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert kinds(parts) == ["RUN_STARTED", *tool, *text, "CUSTOM", "RUN_FINISHED"]
    assert kinds(failed) == ["RUN_STARTED", "RUN_ERROR"]
    assert failed[-1][1]["code"] == "llm_unauthorized"


async def test_a_run_that_breaks_at_any_event_goes_on_there_and_is_stored_once(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.script(Reply([f"word{number} " for number in range(6)]))
    whole = await told(client, AG_UI, run("Count"))

    for after in range(whole[-1][0] + 1):
        rest = await told(client, AG_UI, run("Count"), **{"Last-Event-ID": str(after)})
        assert rest == [(number, part) for number, part in whole if number > after]
    assert len(await contents(services)) == 2


async def test_a_chat_that_waits_for_its_answer_takes_it_up_from_its_beginning(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    goes_on = threading.Event()
    model_server.script(Reply(["One ", "two ", "three"], held=goes_on))
    stream = f"{UI}/c-1/stream"
    assert (await client.get(stream, params={"user": "u-1"})).status_code == 204

    async with client.stream("POST", UI, json=ui("Count")) as response:
        async for _, data in lines(response):
            if "text-delta" in data:
                break  # the page is loaded again
    async with client.stream("GET", stream, params={"user": "u-1"}) as taken_up:
        other = await client.get(stream, params={"user": "u-2"})
        goes_on.set()
        await taken_up.aread()

    parts = [json.loads(line[6:]) for line in taken_up.text.splitlines() if line.startswith("data: {")]
    assert parts[0]["type"] == "start"
    assert "".join(part.get("delta", "") for part in parts) == "One two three"
    assert other.status_code == 204
    assert (await client.get(stream, params={"user": "u-1"})).status_code == 204


async def test_a_cancelled_turn_ends_as_both_protocols_say_it(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    for path, body, last in ((UI, ui("Count"), "abort"), (AG_UI, run("Count", thread="t-9"), "RUN_FINISHED")):
        model_server.script(Reply(["One ", "two ", "three"], gap_s=30))
        seen: list[dict[str, Any]] = []
        async with client.stream("POST", path, json=body) as response:
            turn_id = response.headers["X-Turn-Id"]
            async for _, data in lines(response):
                if data == "[DONE]":
                    continue
                seen.append(json.loads(data))
                if "One" in data:
                    stopping = asyncio.create_task(client.post(f"/api/v1/turns/{turn_id}/cancel"))
        assert (await stopping).json()["status"] == "cancelled"
        assert seen[-1]["type"] == last
    EVENT.validate_python(seen[-1])
    assert seen[-1]["outcome"] == {"type": "cancelled"}


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        (UI, ui("Hello", chat=".."), "id"),
        (UI, ui("Hello", "Hi"), "last message"),
        (UI, ui("Hello", expert="nobody"), "nobody"),
        (AG_UI, {**run("Hello"), "forwardedProps": {"user": 7}}, "forwardedProps.user"),
        (AG_UI, {**run(), "messages": [{"id": "m", "role": "user", "content": {"x": 1}}]}, "content"),
    ],
)
async def test_what_is_wrong_is_named_before_the_stream_begins(
    shared_client: httpx.AsyncClient, path: str, body: dict[str, Any], named: str
) -> None:
    answer = await shared_client.post(path, json=body)
    assert answer.status_code in {404, 422}
    assert named in answer.json()["detail"]


WEATHER = {"name": "get_weather", "description": "Weather.", "parameters": {"type": "object", "properties": {}}}


async def test_the_ai_sdks_client_runs_its_tool_and_the_message_goes_on(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.script(
        Reply(["Let me look."], [ToolCall("get_weather", {"city": "Leeds"})]), Reply(["It rains."])
    )
    asking = {**ui("What is the weather?"), "tools": {"get_weather": WEATHER}}
    parts = _parts((await client.post(UI, json=asking)).text)
    [call] = [each for each in parts if each["type"] == "tool-input-available"]
    assert (call["toolName"], call["input"], parts[-1]["finishReason"]) == (
        "get_weather",
        {"city": "Leeds"},
        "tool-calls",
    )
    done = {
        "type": "tool-get_weather",
        "toolCallId": call["toolCallId"],
        "state": "output-available",
        "input": call["input"],
        "output": {"rain": True},
    }
    text = {"type": "text", "text": "Let me look."}
    message = {"id": parts[0]["messageId"], "role": "assistant", "parts": [{"type": "step-start"}, text, done]}
    more = {**asking, "messages": [*asking["messages"], message]}
    rest = _parts((await client.post(UI, json=more)).text)
    assert rest[0]["messageId"] == parts[0]["messageId"]
    assert "".join(each["delta"] for each in rest if each["type"] == "text-delta") == "It rains."
    assert rest[-1]["finishReason"] == "stop"
    message["parts"] += [{"type": "step-start"}, {"type": "text", "text": "It rains."}]
    thanks = {"id": "m-9", "role": "user", "parts": [{"type": "text", "text": "Thanks"}]}
    await client.post(UI, json={**asking, "messages": [*asking["messages"], message, thanks]})
    assert [text for _, text in await contents(services)][:3] == [
        "What is the weather?",
        "Let me look.\n\nIt rains.",
        "Thanks",
    ]


async def test_ag_uis_front_end_runs_its_tool_in_the_next_run(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    both = Reply([], [CLOCK, ToolCall("get_weather", {"city": "Leeds"}, "call_2")])
    model_server.script(both, Reply(["It rains."]))
    asked = {"id": "m-1", "role": "user", "content": "What is the weather?"}
    body = {
        "threadId": "t-1",
        "runId": "r-1",
        "messages": [asked],
        "tools": [WEATHER],
        "forwardedProps": {"user": "u-1"},
    }
    events = _parts((await client.post(AG_UI, json=body)).text)
    for each in events:
        EVENT.validate_python(each)
    begun = {each["toolCallName"]: each["toolCallId"] for each in events if each["type"] == "TOOL_CALL_START"}
    assert list(begun) == ["get_weather", "get_current_time"]
    of_calls = [(each["type"], each["toolCallId"]) for each in events if each["type"].startswith("TOOL_CALL_")]
    kinds = ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END")
    whole = [(kind, call_id) for call_id in begun.values() for kind in kinds]
    assert [each for each in of_calls if each[0] != "TOOL_CALL_RESULT"] == whole
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name, call_id in begun.items()
    ]
    results = [
        {"id": f"r-{name}", "role": "tool", "toolCallId": call_id, "content": name}
        for name, call_id in begun.items()
    ]
    messages = [asked, {"id": "m-2", "role": "assistant", "toolCalls": calls}, *results]
    rest = _parts((await client.post(AG_UI, json={**body, "runId": "r-2", "messages": messages})).text)
    assert "".join(each["delta"] for each in rest if each["type"] == "TEXT_MESSAGE_CONTENT") == "It rains."
    assert await contents(services) == [("user", "What is the weather?"), ("assistant", "It rains.")]


def _parts(body: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def test_what_of_a_request_has_no_effect_is_named(client: httpx.AsyncClient) -> None:
    body = ui("Hello", kb_prefx="manual", experts="x")
    body["messages"][0]["parts"].append({"type": "data-selection", "data": {"x": 1}})
    answer = await client.post(UI, json=body)
    ignored = ["data-selection", "experts", "kb_prefx"]
    assert answer.headers["X-Anamnesis-Ignored"].split(", ") == ignored
    parts = [part async for _, part in lines(answer)]
    assert [json.loads(each)["messageMetadata"]["ignored"] for each in parts if "messageMetadata" in each] == [
        ignored
    ]
    body = {**run("Hello"), "state": {"page": "bills"}}
    body["forwardedProps"]["temperatur"] = 1
    answer = await client.post(AG_UI, json=body)
    assert answer.headers["X-Anamnesis-Ignored"] == "state, temperatur"
    assert '"ignored":["state","temperatur"]' in answer.text
    assert "X-Anamnesis-Ignored" not in (await client.post(AG_UI, json=run("Hello", run_id="run-2"))).headers
