"""Tools that a client brings: called by the model, run by the client, and answered in the same exchange."""

import asyncio
import json
import threading
from typing import Any
from uuid import UUID

import httpx
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, omit

from graph.turns.other_processes import recover
from services.bootstrap import Services
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from tests.api.openai.test_attachments import FACT, contract
from tests.support.model_server import ModelServer, Received, Reply, ToolCall, sse
from tests.support.openai_clients import contents

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "strict": True,
    },
}
QUESTION = "What is the weather where I live?"


def _calls(*cities: str) -> Reply:
    return Reply(
        ["Let me look."],
        [ToolCall("get_weather", {"city": city}, f"call_{place}") for place, city in enumerate(cities)],
    )


async def _ask(sdk: AsyncOpenAI, messages: list[dict[str, Any]], **more: Any) -> Any:
    asked: Any = {"model": "default", "messages": messages, "tools": [WEATHER], "user": "u-1", **more}
    return await sdk.chat.completions.create(**asked)


def _with_results(messages: list[dict[str, Any]], answer: Any, *results: str) -> list[dict[str, Any]]:
    message = answer.choices[0].message
    said = [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(message.tool_calls, results, strict=True)
    ]
    return [*messages, message.model_dump(exclude_none=True), *said]


def _prompts(model_server: ModelServer) -> list[Received]:
    """What the model was asked with tools."""
    return [each for each in model_server.requests if "tools" in each.body]


async def test_a_call_goes_to_the_client_and_its_result_back_into_the_same_turn(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    await _ask(sdk, [{"role": "user", "content": "I live in Leeds."}], extra_headers={"X-Session-Id": "s-0"})
    headers = {"X-Session-Id": "s-1"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model_server.script(_calls("Leeds"), Reply(["It ", "rains."]))
    asked = await _ask(sdk, messages, extra_headers=headers)
    choice = asked.choices[0]
    assert choice.finish_reason == "tool_calls"
    [call] = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Leeds"})
    messages = _with_results(messages, asked, "Rain, 9 degrees")
    answer = await _ask(sdk, messages, extra_headers=headers)
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("stop", "It rains.")
    first, second = _prompts(model_server)[-2:]
    assert second.body["input"][: len(first.body["input"])] == first.body["input"]
    assert second.body["input"][-1]["output"] == "Rain, 9 degrees"
    assert any("Leeds" in text for role, text in first.prompt if role == "system")
    stored = (await contents(services))[-2:]
    assert stored == [("user", QUESTION), ("assistant", "Let me look.\n\nIt rains.")]
    repeated = await _ask(sdk, messages, extra_headers=headers)
    assert repeated.choices[0].message.content == "It rains."
    said = answer.choices[0].message.model_dump(exclude_none=True)
    more = [*messages, said, {"role": "user", "content": "Thanks"}]
    await _ask(sdk, more, extra_headers=headers)
    assert [text for _, text in (await contents(services))[-4:-1]] == [QUESTION, stored[1][1], "Thanks"]
    source = '<source name="earlier result of get_weather { city : Leeds }">\nRain, 9 degrees\n</source>'
    assert source in _prompts(model_server)[-1].prompt[-2][1]


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_history_without_its_calls_is_of_the_same_conversation(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer, *, keeps: bool
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model_server.script(_calls("Leeds"), Reply(["It rains.\n\nTake a coat."]))
    asked = await _ask(sdk, messages)
    whole = _with_results(messages, asked, "Rain")
    answer = await _ask(sdk, whole)
    said = [answer.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": "Thanks"}]
    await _ask(sdk, [*(whole if keeps else messages), *said])
    stored = [text for _, text in await contents(services)]
    assert stored[:3] == [QUESTION, "Let me look.\n\nIt rains.\n\nTake a coat.", "Thanks"]


@pytest.mark.parametrize("user", ["u-1", None])
async def test_a_long_result_is_read_where_the_question_points(
    sdk: AsyncOpenAI, model_server: ModelServer, user: str | None
) -> None:
    question = "How much is the warehouse deposit?"
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    model_server.script(_calls("Leeds", "York"), Reply(["42,300."]))
    asked = await _ask(sdk, messages, user=user)
    messages = _with_results(messages, asked, contract("en", 120_000), "Short.")
    request: dict[str, Any] = {"model": "default", "tools": [WEATHER], "messages": messages, "user": user or omit}
    answer: Any = await sdk.chat.completions.with_raw_response.create(**request)
    shown, of = map(int, answer.headers["X-Anamnesis-Cut"].removeprefix("results=").split("/"))
    assert (shown < 70_000, of > 120_000) == (True, True)
    long, short = [each["output"] for each in _prompts(model_server)[-1].body["input"] if "output" in each]
    assert FACT["en"].strip() in long
    assert f"[This result has {of - 6} characters" in long
    assert short == "Short."
    if user:
        turn = await sdk.get(
            f"{sdk.base_url}../api/v1/turns/{answer.headers['X-Turn-Id']}", cast_to=httpx.Response
        )
        assert turn.json()["degraded"] == ["results"]


async def _pieces(stream: Any) -> tuple[list[str], list[Any], str]:
    """Text, calls put together from their pieces, and why it ended, of a stream of chunks."""
    said: list[str] = []
    calls: list[Any] = []
    finish = ""
    async for chunk in stream:
        for choice in chunk.choices:
            said += [choice.delta.content] if choice.delta.content else []
            for piece in choice.delta.tool_calls or []:
                if piece.index == len(calls):
                    calls.append(piece)
                else:  # the network cuts arguments where it likes
                    assert piece.function.name is None
                    calls[piece.index].function.arguments += piece.function.arguments
            finish = choice.finish_reason or finish
    return said, calls, finish


async def test_calls_at_once_are_streamed_beside_those_of_the_service(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    both = Reply(
        ["I note it."],
        [
            ToolCall("remember", {"text": "I live in Leeds"}, "c1"),
            ToolCall("get_weather", {"city": "Leeds"}, "c2"),
            ToolCall("get_weather", {"city": "York"}, "c3"),
        ],
    )
    model_server.script(both, Reply(["Both ", "dry."]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "I live in Leeds. Is it dry there and in York?"}]
    said, calls, finish = await _pieces(await _ask(sdk, messages, stream=True))
    assert (said, finish) == (["I note it."], "tool_calls")
    assert [(each.index, each.function.name) for each in calls] == [(0, "get_weather"), (1, "get_weather")]
    assert [json.loads(each.function.arguments)["city"] for each in calls] == ["Leeds", "York"]
    asked = {"role": "assistant", "content": said[0], "tool_calls": [each.model_dump() for each in calls]}
    results = [{"role": "tool", "tool_call_id": each.id, "content": f"dry {each.index}"} for each in calls]
    with pytest.raises(BadRequestError, match="has no result"):
        await _ask(sdk, [*messages, asked, results[0]])
    said, _, finish = await _pieces(await _ask(sdk, [*messages, asked, *results], stream=True))
    assert ("".join(said), finish) == ("Both dry.", "stop")
    sent = _prompts(model_server)[-1].body["input"]
    outputs = [(each["call_id"], each["output"]) for each in sent if each.get("type") == "function_call_output"]
    assert [call_id for call_id, _ in outputs] == ["c1", "c2", "c3"]
    assert [output for _, output in outputs[1:]] == ["dry 0", "dry 1"]
    assert len(await contents(services)) == 2


@pytest.mark.parametrize("called", [True, False])
async def test_orders_to_memory_outlive_the_wait_for_results(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer, *, called: bool
) -> None:
    own = [ToolCall("remember", {"text": "My sister is called Mia"}, "own")] if called else []
    theirs = ToolCall("get_weather", {"city": "Leeds"}, "theirs")
    model_server.script(Reply(["One moment."], [*own, theirs]), Reply(["Done, and it rains."]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Remember that my sister is called Mia."}]
    asked = await _ask(sdk, messages)
    answer = await _ask(sdk, _with_results(messages, asked, "Rain"))
    assert answer.choices[0].message.content == "Done, and it rains."
    [change] = (await _turn(services, answer)).memory_changes
    assert "Mia" in str(change)


@pytest.mark.parametrize("way", ["items", "previous", "conversation"])
async def test_responses_end_in_calls_and_go_on_with_their_outputs(
    sdk: Any, model_server: ModelServer, way: str
) -> None:
    tool: Any = {"type": "function", **WEATHER["function"]}
    conversation = await sdk.conversations.create(metadata={"user": "u-1"})
    given: dict[str, Any] = {"model": "default", "tools": [tool], "user": "u-1"}
    if way == "conversation":
        given["conversation"] = conversation.id
    model_server.script(Reply([], [ToolCall("get_weather", {"city": "Leeds"})]), Reply(["It ", "rains."]))
    question = {"role": "user", "content": QUESTION}
    events: list[Any] = [each async for each in await sdk.responses.create(input=[question], stream=True, **given)]
    asked: Any = events[-1].response
    assert asked.status == "completed"
    [call] = asked.output
    assert (call.type, call.name, json.loads(call.arguments)) == (
        "function_call",
        "get_weather",
        {"city": "Leeds"},
    )
    deltas = [each.delta for each in events if each.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == call.arguments
    [kept] = (await sdk.responses.retrieve(asked.id)).output
    assert (kept.call_id, kept.id, json.loads(kept.arguments)) == (call.call_id, call.id, {"city": "Leeds"})
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain"}
    more: Any = [question, call.model_dump(), output] if way == "items" else [output]
    if way == "previous":
        given["previous_response_id"] = asked.id
    answer = await sdk.responses.create(input=more, **given)
    assert (answer.status, answer.output_text) == ("completed", "It rains.")
    assert answer.id != asked.id
    assert (await sdk.responses.retrieve(answer.id)).output == answer.output
    items: Any = await sdk.conversations.items.list(answer.conversation.id)
    said = [(each.type, each.content[0].text) for each in items.data]
    assert said == [("message", "It rains."), ("message", QUESTION)]


async def _turn(services: Services, response: Any) -> Any:
    turn_id = UUID(response.id.removeprefix("chatcmpl-")[:36])
    return await services.turns.get(DEFAULT_TENANT, turn_id)


async def test_what_waits_for_no_results_ends_as_partial(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    headers = {"X-Session-Id": "s-1"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model_server.script(_calls("Leeds"))
    asked = await _ask(sdk, messages, extra_headers=headers)
    assert (await _turn(services, asked)).status == "paused"
    later = [*messages, {"role": "user", "content": "Never mind."}]
    await _ask(sdk, later, extra_headers=headers)
    ended = await _turn(services, asked)
    assert (ended.status, ended.answer, ended.error["code"]) == ("partial", "Let me look.", "no_tool_results")
    model_server.script(_calls("York"))
    again = await _ask(sdk, messages, extra_headers={"X-Session-Id": "s-2"})
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "UPDATE turns SET lease_expires_at = now() - interval '1 hour' WHERE status = 'paused'"
        )
    await recover(services, (), lambda turn, earlier=(): None)
    assert (await _turn(services, again)).status == "partial"
    answer = await _ask(sdk, _with_results(messages, again, "Sun"), extra_headers={"X-Session-Id": "s-2"})
    assert answer.choices[0].finish_reason == "stop"
    assert "Sun" in str(_prompts(model_server)[-1].body["input"][-1])


@pytest.mark.parametrize("results", [(), ("Rain, 9 degrees",)])
async def test_a_message_behind_open_calls_goes_on_with_their_conversation(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer, results: tuple[str, ...]
) -> None:
    question: dict[str, Any] = {"role": "user", "content": QUESTION}
    model_server.script(_calls("Leeds"), Reply(["Fine."]))
    asked = await _ask(sdk, [question])
    messages = [question, asked.choices[0].message.model_dump(exclude_none=True)]
    if results:
        messages = _with_results([question], asked, *results)
    messages.append({"role": "user", "content": "Never mind."})
    await _ask(sdk, messages)
    assert [text for _, text in await contents(services)] == [QUESTION, "Let me look.", "Never mind.", "Fine."]
    assert (await _turn(services, asked)).status == "partial"
    assert all(result in str(_prompts(model_server)[-1].body["input"][-1]) for result in results)
    said = [{"role": "assistant", "content": "Fine."}, {"role": "user", "content": "Thanks."}]
    await _ask(sdk, [*messages, *said])
    assert [text for _, text in await contents(services)][4:5] == ["Thanks."]


async def test_outputs_may_come_with_a_message_and_with_images_that_the_model_sees(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    tool: Any = {"type": "function", **WEATHER["function"]}
    none = Reply(status=400, error_message="This model does not support image input.")
    model_server.script(_calls("Leeds"), _calls("York"), none, _calls("Hull"), Reply(["Briefly: rain."]))
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}

    async def go_on(before: Any, *more: Any) -> Any:
        file = {"type": "input_file", "filename": "map.pdf", "file_data": "data:application/pdf;base64,AAAA"}
        output = [{"type": "input_text", "text": "Rain"}, image, file]
        call: Any = before.output[-1]
        brought = {"type": "function_call_output", "call_id": call.call_id, "output": output}
        given: Any = {"model": "default", "tools": [tool], "previous_response_id": before.id}
        return await sdk.responses.create(input=[brought, *more], **given)

    asked = await sdk.responses.create(model="default", tools=[tool], user="u-1", input=QUESTION)
    again = await go_on(asked)
    assert again.model_extra["anamnesis"]["ignored"] == ["files"]
    result, seen = _prompts(model_server)[-1].body["input"][-2:]
    assert result["output"] == "Rain\n[input_file, map.pdf; not shown]\n[image: image/png, 3 bytes]"
    assert [each["type"] for each in seen["content"]] == ["input_text", "input_image", "input_text"]
    assert seen["content"][1]["image_url"] == image["image_url"]
    third = await go_on(again)
    sent = str(_prompts(model_server)[-1].body["input"])
    assert sent.count("[Images that the language model does not take are not shown.]") == 2
    assert image["image_url"] not in sent
    answer = await go_on(third, {"role": "user", "content": "Be brief."})
    assert answer.output_text == "Briefly: rain."
    sent = str(_prompts(model_server)[-1].body["input"][-1])
    assert all(said in sent for said in ("Rain", "[its images are not shown]", "Be brief."))
    assert [role for role, _ in await contents(services)] == ["user", "assistant"] * 2


async def test_a_stream_whose_pieces_are_kept_no_more_tells_the_whole_answer(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    model_server.script(_calls("Leeds"), Reply(["It ", "rains."]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    asked = await _ask(sdk, messages)
    messages = _with_results(messages, asked, "Rain")
    await _ask(sdk, messages)
    turn_id = (await _turn(services, asked)).id
    async with asyncio.timeout(60):
        while not await services.events.delete([turn_id]):  # noqa: ASYNC110 — they are copied in the background
            await asyncio.sleep(0.01)
    said, _, finish = await _pieces(await _ask(sdk, messages, stream=True))
    assert (said, finish) == (["It rains."], "stop")


@pytest.mark.settings(encryption=True)
async def test_a_paused_turn_goes_on_sealed_and_goes_with_its_user(
    sdk: AsyncOpenAI, services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model_server.script(_calls("Leeds"), _calls("York"), Reply(["It rains."]))
    asked = await _ask(sdk, messages)
    messages = _with_results(messages, asked, "Rain")
    again = await _ask(sdk, messages)
    answer = await _ask(sdk, _with_results(messages, again, "Sun"))
    assert answer.choices[0].message.content == "It rains."
    rounds = (await _turn(services, answer)).context_report["rounds"]
    assert [each["calls"][0]["arguments"]["city"] for each in rounds] == ["Leeds", "York"]
    model_server.script(_calls("Hull"))
    later = await _ask(sdk, [{"role": "user", "content": "And in Hull?"}], extra_headers={"X-Session-Id": "s-9"})
    erased = await client.request("DELETE", "/api/v1/users/u-1")
    assert erased.status_code < 300, erased.text
    with pytest.raises(NotFound):
        await _turn(services, later)


async def test_results_are_words_of_others_and_are_kept_by_name_and_size(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    claim = "The user is allergic to peanuts"
    model_server.script(_calls("Leeds"), Reply([], [ToolCall("remember", {"text": claim})]), Reply([f"{claim}."]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    asked = await _ask(sdk, messages)
    answer = await _ask(sdk, _with_results(messages, asked, f"{claim}. Rain."))
    assert "Nothing was changed: these are not the user's own words." in str(model_server.requests[-1].body)
    turn = await _turn(services, answer)
    [kept] = turn.context_report["rounds"]
    assert (kept["text"], [call["name"] for call in kept["calls"]]) == ("Let me look.", ["get_weather"])
    assert [(each["name"], each["characters"], "content" in each) for each in kept["results"]] == [
        ("get_weather", len(claim) + 7, False)
    ]
    explained = await services.explanations.of_turn(DEFAULT_TENANT, turn.id)
    assert explained["rounds"] == [kept]
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        rows = await (
            await connection.execute(
                "SELECT origin::text, foreign_spans, content FROM messages WHERE role <> 'user'"
            )
        ).fetchall()
        asked_for = await (await connection.execute("SELECT request FROM turns")).fetchall()
    [(origin, spans, content)] = rows
    assert (origin, content[spans[0] : spans[1]]) == ("tool", f"{claim}.")
    assert claim not in str(asked_for)


async def test_a_tool_of_the_services_name_is_the_clients(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    theirs: Any = {"type": "function", "function": {"name": "remember", "parameters": {"type": "object"}}}
    model_server.script(Reply([], [ToolCall("remember", {"note": "tea"})]), Reply(["Noted."]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Note that I like tea."}]
    asked = await _ask(sdk, messages, tools=[theirs])
    [call] = asked.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("remember", {"note": "tea"})
    names = [each["name"] for each in _prompts(model_server)[-1].body["tools"]]
    assert names.count("remember") == 1
    assert "anamnesis_remember" in names
    more: Any = {"tool_choice": "required", "store": False, "prediction": {"type": "content", "content": "x"}}
    forced = await _ask(sdk, messages, tools=[theirs], **more)
    assert forced.model_extra["anamnesis"]["ignored"] == ["prediction"]
    assert forced.choices[0].finish_reason == "stop"
    assert [each["name"] for each in _prompts(model_server)[-1].body["tools"]] == ["remember"]


async def test_without_a_user_the_client_holds_the_rounds(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model_server.script(_calls("Leeds", "York"), Reply(["Rain."]))
    asked = await _ask(sdk, messages, user=None)
    answer = await _ask(sdk, _with_results(messages, asked, "wet", "dry"), user=None)
    assert answer.choices[0].message.content == "Rain."
    sent = _prompts(model_server)[-1].body["input"]
    assert [each["output"] for each in sent if each.get("type") == "function_call_output"] == ["wet", "dry"]
    assert await contents(services) == []


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools.0", "web_search is a tool that nobody runs here"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}, "tools.0", "knowledge base"),
        ({"tools": [WEATHER, WEATHER]}, "tools", "two tools of the name get_weather"),
        ({"tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice", "names other"),
        ({"functions": [{"name": "old"}]}, "functions", "older form"),
    ],
)
async def test_what_nobody_runs_is_refused_by_name(
    shared_sdk: AsyncOpenAI, asked: dict[str, Any], field: str, words: str
) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    with pytest.raises(BadRequestError, match=words) as refused:
        await _ask(shared_sdk, messages, **asked)
    assert refused.value.param == field


WRITES = {"path": "a.py", "text": 'print("{\\n}")'}
WRITE: Any = {"name": "write", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
FUNCTION: Any = {"type": "function", "function": WRITE}
SAYS = {"role": "user", "content": "Write it."}
STREAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat": ("/v1/chat/completions", {"user": "u-1", "messages": [SAYS], "tools": [FUNCTION]}, '"arguments":"'),
    "responses": (
        "/v1/responses",
        {"user": "u-1", "input": [SAYS], "tools": [{"type": "function", **WRITE}]},
        '.delta"',
    ),
    "anthropic": (
        "/v1/messages",
        {"metadata": {"user_id": "u-1"}, "messages": [SAYS], "tools": [{"name": "write", "input_schema": {}}]},
        "input_json_delta",
    ),
    "ai-sdk": (
        "/api/v1/ui/chat",
        {"id": "c", "user": "u-1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Write."}]}]},
        "tool-input-delta",
    ),
    "ag-ui": (
        "/api/v1/ui/ag-ui",
        {"threadId": "t", "runId": "r", "messages": [SAYS], "forwardedProps": {"user": "u-1"}},
        "TOOL_CALL_ARGS",
    ),
}  # fmt: skip


def _argument(event: dict[str, Any]) -> str:
    """The piece of a call's arguments in an event of any protocol."""
    delta = event.get("delta", event.get("inputTextDelta"))
    if isinstance(delta, dict):
        return str(delta.get("partial_json", ""))
    if "choices" in event:
        calls = [each for choice in event["choices"] for each in choice["delta"].get("tool_calls", ())]
        return "".join(each["function"]["arguments"] for each in calls)
    return str(delta) if "arg" in event["type"].lower() or "input" in event["type"] else ""


@pytest.mark.parametrize("protocol", STREAMS)
async def test_arguments_come_as_the_model_writes_them(
    client: httpx.AsyncClient, model_server: ModelServer, protocol: str
) -> None:
    path, body, mark = STREAMS[protocol]
    held = threading.Event()
    calls = [ToolCall("write", WRITES, "c0"), ToolCall("write", {}, "c1")]
    model_server.script(Reply([], calls, held=held))
    asked = {"model": "default", "stream": True, "max_tokens": 500, "tools": [WRITE], **body}
    pieces: list[str] = []
    async with asyncio.timeout(60), client.stream("POST", path, json=asked) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            if line.startswith("data: {") and mark in line and (piece := _argument(json.loads(line[6:]))):
                pieces.append(piece)
                held.set()  # the model goes on when this much has come
    assert "".join(pieces) == json.dumps(WRITES) + ("{}" if protocol != "ai-sdk" else "")


async def test_a_call_that_breaks_off_is_told_as_a_failure_and_the_model_is_asked_once(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "get_weather", "arguments": ""}
    begun = '{"city": "Le'
    output = [{**item, "arguments": begun, "status": "completed"}]
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": begun},
        {"type": "response.completed", "response": {"status": "completed", "output": output}},
    ]
    model_server.script(Reply(raw=b"".join(map(sse, events))))
    stream = await _ask(sdk, [{"role": "user", "content": QUESTION}], stream=True)
    told: list[str] = []

    async def read() -> None:
        async for chunk in stream:
            told.extend(each.function.arguments for each in chunk.choices[0].delta.tool_calls or [])

    with pytest.raises(APIError, match="answer"):
        await read()
    assert "".join(told) == begun
    assert len(_prompts(model_server)) == 1
    assert [role for role, _ in await contents(services)] == ["user"]
