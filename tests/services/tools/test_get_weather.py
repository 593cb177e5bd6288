"""The weather, from a server that answers, and from one that does not as it should."""

import copy
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from langchain_core.messages import ToolCall

from services.platform.outgoing import OutgoingHttp
from services.tools.executor import ToolExecutor
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices
from tests.support.ports import free_port
from tests.support.turns import opened
from tests.support.weather_server import BEIJING, FORECAST, WeatherServer

SEARCH, WEATHER = "/v1/search", "/v1/forecast"
UNREADABLE = "The weather service's answer cannot be read."


@pytest.fixture
async def http() -> AsyncIterator[OutgoingHttp]:
    opened = OutgoingHttp()
    yield opened
    await opened.close()


async def _ask(http: OutgoingHttp, url: str, city: str, **settings: str) -> tuple[str, str]:
    services = ToolServices(http=http, weather_url=url, weather_geocoding_url=settings.get("geocoding_url"))
    call = ToolCall(name="get_weather", args={"city": city}, id="c")
    executor = ToolExecutor(ToolRegistry.of_builtin_tools(services))
    (message,) = await executor.run([call], opened(), lambda *_: None)
    return message.text, message.status


def _changed(part: str, **values: Any) -> dict[str, Any]:
    forecast = copy.deepcopy(FORECAST)
    forecast[part] |= values
    return forecast


async def test_the_weather_is_told_in_the_language_of_the_citys_name(
    weather: WeatherServer, http: OutgoingHttp
) -> None:
    assert await _ask(http, weather.url, "北京") == (
        "北京, 北京市, 中国 的天气，当地时间 2026-11-21 18:15（Asia/Shanghai）。\n"
        "现在：阴，3.1°C，体感 -0.4°C，湿度 45%，风速 8.6 km/h。\n"
        "2026-11-21：阴，-1.3～7.2°C，降水概率 0%。\n"
        "2026-11-22：小雨，0.2～5°C，降水概率 65%。\n"
        "2026-11-23：小雪，-4.8～1.4°C。",
        "success",
    )
    text, _ = await _ask(http, weather.url + "/", "Paris")
    assert text.startswith("Weather in Paris, Île-de-France, France, local time 2026-11-21 18:15 (Asia/Shanghai).")
    assert "Now: overcast, 3.1°C, feels like -0.4°C, humidity 45%, wind 8.6 km/h." in text
    assert "2026-11-22: slight rain, 0.2 to 5°C, precipitation probability 65%." in text


@pytest.mark.parametrize(
    ("city", "asked"), [("北京市", ["北京市", "北京"]), ("沙市", ["沙市"]), ("无此地方", ["无此地方"])]
)
async def test_a_city_is_also_found_without_the_word_city(
    weather: WeatherServer, http: OutgoingHttp, city: str, asked: list[str]
) -> None:
    await _ask(http, weather.url, city)
    assert weather.names_asked() == asked


async def test_a_city_that_is_not_known_is_answered_to_the_model(
    weather: WeatherServer, http: OutgoingHttp
) -> None:
    assert await _ask(http, weather.url, "Atlantis") == (
        "The weather service knows no place named Atlantis.",
        "error",
    )
    assert (await _ask(http, weather.url, ""))[0].startswith("The arguments are wrong: city")
    weather.instead[SEARCH] = lambda: web.json_response({"results": []})
    assert "knows no place named 北京" in (await _ask(http, weather.url, "北京"))[0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda: web.Response(status=500), "The weather service answered with an error (HTTP 500)."),
        (
            lambda: web.Response(status=302, headers={"Location": "http://127.0.0.1:9/elsewhere"}),
            "The weather service answered with an error (HTTP 302).",
        ),
        (lambda: web.Response(text="<html>Sign in</html>", content_type="text/html"), UNREADABLE),
        (lambda: web.Response(body=b"\xff\xfe\x00"), UNREADABLE),
        (lambda: web.Response(body=b"[" * 100_000), UNREADABLE),
        (
            lambda: web.Response(body=b" " * 300_000),
            "The weather service's answer cannot be read: it is too long.",
        ),
    ],
)
async def test_what_is_no_answer_is_an_error_in_words_of_our_own(
    weather: WeatherServer, http: OutgoingHttp, answer: Callable[[], web.Response], says: str
) -> None:
    weather.instead[SEARCH] = answer
    assert await _ask(http, weather.url, "北京") == (says, "error")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SEARCH, {"results": [{**BEIJING, "latitude": "north"}]}),
        (SEARCH, {"results": [{**BEIJING, "name": "x" * 201}]}),
        (WEATHER, {**FORECAST, "daily": {}}),
        (WEATHER, _changed("current", temperature_2m="warm")),
        (WEATHER, _changed("current", temperature_2m=float("nan"))),
        (WEATHER, _changed("daily", weather_code=[3])),
    ],
)
async def test_an_answer_of_another_form_is_not_told(
    weather: WeatherServer, http: OutgoingHttp, path: str, body: Any
) -> None:
    weather.instead[path] = lambda: web.Response(text=json.dumps(body), content_type="application/json")
    assert await _ask(http, weather.url, "北京") == (UNREADABLE, "error")


async def test_what_the_server_does_not_know_is_left_out(weather: WeatherServer, http: OutgoingHttp) -> None:
    weather.places["北京"] = {"name": "北\n京", "latitude": 39.9, "longitude": 116.4}
    missing = _changed("current", apparent_temperature=None, weather_code=42)
    missing["daily"] |= {"weather_code": [None, 99, 0], "temperature_2m_max": [None, 1, 2]}
    weather.instead[WEATHER] = lambda: web.json_response(missing)
    lines = (await _ask(http, weather.url, "北京"))[0].splitlines()
    assert lines[0] == "北 京 的天气，当地时间 2026-11-21 18:15（Asia/Shanghai）。"
    assert lines[1] == "现在：天气代码 42，3.1°C，湿度 45%，风速 8.6 km/h。"
    assert lines[2] == "2026-11-21：–，-1.3～–°C，降水概率 0%。"
    assert "雷暴伴大冰雹" in lines[3]


async def test_a_server_that_is_away_is_said_to_be(http: OutgoingHttp) -> None:
    assert await _ask(http, f"http://127.0.0.1:{free_port()}", "北京") == (
        "The weather service cannot be reached.",
        "error",
    )
