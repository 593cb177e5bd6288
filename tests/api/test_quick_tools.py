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
from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.visits import import_lines, said
from tests.support.weather_server import WeatherServer

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

BOTH = "北京和上海今天天气怎么样？"
ASK: dict[str, Any] = {"user_id": "u-1", "session_id": "s-1", "message": BOTH}


@pytest.fixture
async def weather() -> AsyncIterator[WeatherServer]:
    """Where the weather is asked for."""
    async with WeatherServer() as server:
        yield server


@pytest.fixture
def settings(settings: Settings, weather: WeatherServer) -> Settings:
    """The usual ones, with a weather server."""
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
    """`async with Turn(client) as stream: …`."""

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


async def test_a_cancelled_turn_leaves_no_tool_running(client: httpx.AsyncClient, weather: WeatherServer) -> None:
    weather.hold("北京")
    async with Turn(client) as stream:
        turn_id = (await stream.until("turn"))["turn_id"]
        await stream.until("tool_result")
        ended = (await client.post(f"/api/v1/turns/{turn_id}/cancel")).json()
    assert (ended["status"], ended["answer"]) == ("cancelled", None)
    await _abandoned(weather)


async def test_quick_tools_are_one_of_the_five_rounds(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    def reply(request: Received) -> Reply:
        call = ToolCall("get_current_time", {}, f"c{len(model_server.requests)}")
        return Reply(tool_calls=[call]) if "tools" in request.body else Reply(["Noon."])

    model_server.default = reply
    answer = (await client.post("/api/v1/chat", json={**ASK, "message": "What time is it?"})).json()
    assert answer["answer"] == "Noon."
    assert len(model_server.requests) == 5


async def _abandoned(weather: WeatherServer) -> None:
    assert await asyncio.wait_for(weather.abandoned.get(), 60) == "北京"


MIXED = "前天我们聊了什么，今天北京天气怎样？"


async def _talked(services: Services) -> None:
    """The day before yesterday, in the user's zone."""
    noon = datetime.now(ZoneInfo("Asia/Shanghai")).replace(hour=12, minute=0) - timedelta(days=2)
    answer = said(noon + timedelta(minutes=1), "好的。", role="assistant")
    await import_lines(services, said(noon, "我养了一只猫叫团子。"), answer)


async def test_past_talk_and_a_tool_are_answered_with_one_call(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _talked(services)
    async with Turn(client, message=MIXED) as stream:
        await stream.until("done")
    assert stream.kinds() == ["turn", "route_decision", "filler", "tool_call", "tool_result", "token", "done"]
    (request,) = model_server.requests
    assert "团子" in str(request.prompt)
    assert any("北京" in each for each in _said(request))


async def test_a_tool_is_asked_though_there_is_no_record(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    async with Turn(client, message=MIXED) as stream:
        await stream.until("done")
    (request,) = model_server.requests
    assert "没有你们的聊天记录" in str(request.prompt)
    assert "tool_result" in stream.kinds()
