"""Turns whose message itself asks for tools, over HTTP: what is sent when, and what the model is shown."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from services.bootstrap import Services
from services.platform.settings import Settings
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.visits import import_lines, said
from tests.support.weather_server import WeatherServer

pytestmark = pytest.mark.untraced

BOTH = "北京和上海今天天气怎么样？"
ASK: dict[str, Any] = {"user_id": "u-1", "session_id": "s-1", "message": BOTH}


@pytest.fixture
def settings(settings: Settings, weather: WeatherServer) -> Settings:
    return settings.model_copy(update={"weather_url": weather.url})


@dataclass
class Stream:
    """A turn's events as they come."""

    lines: AsyncIterator[str]
    events: list[tuple[str, Any]] = field(default_factory=list)

    async def until(self, status: str) -> Any:
        """Read to the next event of this kind, and return its content."""
        async for line in self.lines:
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                self.events.append((event["status"], event["content"]))
                if event["status"] in {status, "error"}:
                    assert event["status"] == status, event
                    return event["content"]
        pytest.fail(f"no {status} before the end")

    def kinds(self) -> list[str]:
        """What came, tokens that follow each other as one."""
        kinds = [status for status, _ in self.events]
        return [kind for place, kind in enumerate(kinds) if kind != "token" or kinds[place - 1] != "token"]

    @property
    def text(self) -> str:
        """All tokens."""
        return "".join(content for status, content in self.events if status == "token")


class Turn:
    """`async with Turn(client, compose="single") as stream: …`."""

    def __init__(self, client: httpx.AsyncClient, **values: Any) -> None:
        self._response = client.stream("POST", "/api/v1/chat/stream", json={**ASK, **values})

    async def __aenter__(self) -> Stream:
        response = await self._response.__aenter__()
        assert response.status_code == 200
        return Stream(response.aiter_lines())

    async def __aexit__(self, *error: Any) -> None:
        await self._response.__aexit__(*error)


def _said(request: Received) -> list[str]:
    """What the prompt holds behind the user's message: calls, results, what the model said, notes."""
    items = request.body["input"]
    last = max(place for place, item in enumerate(items) if item.get("role") == "user")
    found = []
    for item in items[last + 1 :]:
        match item.get("type"):
            case "function_call":
                found.append(f"call {json.loads(item['arguments']).get('city')}")
            case "function_call_output":
                result, _, note = item["output"].partition("\n\n<context>\n")
                found.append(f"result {result.split('的天气')[0].split(',')[0]}")
                found += [f"system {note}"] if note else []
            case _:
                content = item["content"]
                text = content if isinstance(content, str) else "".join(part["text"] for part in content)
                found.append(f"{item['role']} {text}")
    return found


async def test_progressively_the_answer_begins_with_the_first_result(
    client: httpx.AsyncClient, weather: WeatherServer, model_server: ModelServer
) -> None:
    model_server.script(Reply(["上海", "3度。"]), Reply(["北京", "也是。"]))
    weather.hold("北京")
    async with Turn(client, compose="progressive") as stream:
        await stream.until("token")
        assert [content["id"] for kind, content in stream.events if kind == "tool_result"] == ["quick_2"]
        weather.release("北京")
        done = await stream.until("done")
    assert done["answer"] == stream.text == "上海3度。\n\n北京也是。"
    results = [content["id"] for kind, content in stream.events if kind == "tool_result"]
    assert results == ["quick_2", "quick_1"]
    assert stream.kinds().index("token") < len(stream.kinds()) - 1 - stream.kinds()[::-1].index("tool_result")
    assert done["usage"]["model_calls"] == 2
    assert done["timings"]["first_token_ms"] > 0

    first, second = model_server.requests
    *shown, note = _said(first)
    assert shown == ["call 上海", "result 上海"]
    assert note.startswith("system 现在就用已有的内容开始回答")
    assert "get_weather(北京)" in note
    assert "tools" not in first.body
    *shown, note = _said(second)
    assert shown == ["call 上海", "result 上海", "assistant 上海3度。", "call 北京", "result 北京"]
    assert note.startswith("system 请用新返回的结果接着")
    assert second.body["tools"]


async def test_when_all_results_are_there_at_once_both_ways_are_the_same(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    async with Turn(client, compose="progressive", message="What time is it in Berlin?") as stream:
        await stream.until("done")
    (request,) = model_server.requests
    assert len(_said(request)) == 2
    assert stream.events[2] == ("filler", "Let me check…")


@pytest.mark.parametrize("compose", ["single", "progressive"])
async def test_a_cancelled_turn_leaves_no_tool_running(
    client: httpx.AsyncClient, weather: WeatherServer, model_server: ModelServer, compose: str
) -> None:
    weather.hold("北京")
    async with Turn(client, compose=compose) as stream:
        turn_id = (await stream.until("turn"))["turn_id"]
        await stream.until("tool_result")
        if compose == "progressive":
            await stream.until("token")
        ended = (await client.post(f"/api/v1/turns/{turn_id}/cancel")).json()
    assert ended["status"] == "cancelled"
    assert bool(ended["answer"]) == (compose == "progressive")
    await _abandoned(weather)


async def test_a_model_that_fails_while_tools_run_ends_the_turn_and_the_tools(
    client: httpx.AsyncClient, weather: WeatherServer, model_server: ModelServer
) -> None:
    model_server.script(Reply(["上海"], ending="cut"))
    weather.hold("北京")
    problem = await client.post("/api/v1/chat", json={**ASK, "compose": "progressive"})
    assert (problem.status_code, problem.json()["code"]) == (502, "llm_stream_broken")
    await _abandoned(weather)


async def test_a_model_that_fails_later_leaves_what_it_has_said(
    client: httpx.AsyncClient, weather: WeatherServer, model_server: ModelServer
) -> None:
    model_server.script(Reply(["上海3度。"]), Reply(status=401))
    weather.hold("北京")
    async with Turn(client, compose="progressive") as stream:
        turn_id = (await stream.until("turn"))["turn_id"]
        await stream.until("token")
        weather.release("北京")
        async for line in stream.lines:
            if line.startswith("event: error"):
                break
        else:
            pytest.fail("no error")
    turn = (await client.get(f"/api/v1/turns/{turn_id}")).json()
    assert (turn["status"], turn["answer"]) == ("partial", "上海3度。\n\n")
    assert turn["usage"]["model_calls"] == 1


@pytest.mark.settings(tools_compose="progressive")
async def test_the_answer_begins_with_a_failure_that_is_there_first(
    client: httpx.AsyncClient, weather: WeatherServer, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Of Porto nothing is known."]), Reply(["In Paris it is three degrees."]))
    weather.hold("Paris")
    async with Turn(client, message="What is the weather like in Paris and Porto today?") as stream:
        await stream.until("token")
        weather.release("Paris")
        done = await stream.until("done")
    results = [content["ok"] for kind, content in stream.events if kind == "tool_result"]
    assert results == [False, True]
    assert "knows no place named Porto" in str(model_server.requests[0].body["input"])
    assert done["answer"] == "Of Porto nothing is known.\n\nIn Paris it is three degrees."


@pytest.mark.settings(tools_compose="progressive")
async def test_a_request_goes_before_the_setting(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.script(Reply(["Three degrees in both."]))
    answer = (await client.post("/api/v1/chat", json={**ASK, "compose": "single"})).json()
    assert (answer["answer"], len(model_server.requests)) == ("Three degrees in both.", 1)


OFFLINE = pytest.mark.settings(llm_model=None, tools_compose="progressive", tools_filler=False)


@pytest.mark.traced
@OFFLINE
async def test_the_offline_model_quotes_each_result_once(
    client: httpx.AsyncClient, weather: WeatherServer
) -> None:
    weather.hold("北京")
    async with Turn(client) as stream:
        await stream.until("token")
        weather.release("北京")
        done = await stream.until("done")
    first, second = done["answer"].split("\n\n")
    assert "filler" not in stream.kinds()
    assert ("上海, " in first, "北京, " in first) == (True, False)
    assert ("上海, " in second, "北京, " in second) == (False, True)


@pytest.mark.settings(llm_api="chat")
async def test_chat_completions_are_sent_results_behind_their_calls(
    client: httpx.AsyncClient, weather: WeatherServer, model_server: ModelServer
) -> None:
    model_server.script(Reply(["上海3度。"]), Reply(["北京也是。"]))
    weather.hold("北京")
    async with Turn(client, compose="progressive") as stream:
        await stream.until("token")
        weather.release("北京")
        await stream.until("done")
    messages = model_server.requests[1].body["messages"]
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    assert [message["role"] for message in messages[last + 1 :]] == ["assistant", "tool", "assistant", "tool"]
    first, _, second, result = messages[last + 1 :]
    assert [call["id"] for call in first["tool_calls"]] == ["quick_2"]
    assert second["content"] == "上海3度。"
    assert [call["id"] for call in second["tool_calls"]] == [result["tool_call_id"]] == ["quick_1"]


async def _abandoned(weather: WeatherServer) -> None:
    assert await asyncio.wait_for(weather.abandoned.get(), 60) == "北京"


MIXED = "前天我们聊了什么，今天北京天气怎样？"


async def _talked(services: Services) -> None:
    """The day before yesterday, in the user's zone."""
    noon = datetime.now(ZoneInfo("Asia/Shanghai")).replace(hour=12, minute=0) - timedelta(days=2)
    answer = said(noon + timedelta(minutes=1), "好的。", role="assistant")
    await import_lines(services, said(noon, "我养了一只猫叫团子。"), answer)


async def test_progressively_the_answer_begins_with_the_days_that_the_message_asks_about_too(
    client: httpx.AsyncClient, services: Services, weather: WeatherServer, model_server: ModelServer
) -> None:
    await _talked(services)
    model_server.script(Reply(["聊了团子。"]), Reply(["北京3度。"]))
    weather.hold("北京")
    async with Turn(client, message=MIXED, compose="progressive") as stream:
        await stream.until("token")
        weather.release("北京")
        done = await stream.until("done")
    assert done["answer"] == stream.text == "聊了团子。\n\n北京3度。"
    first, second = model_server.requests
    assert "团子" in str(first.prompt)
    assert "call 北京" not in _said(first)
    assert "result 北京" in _said(second)
