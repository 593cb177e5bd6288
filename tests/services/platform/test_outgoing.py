"""Requests to other servers: how each way of failing is reported."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from services.platform.outgoing import OutgoingFailed, OutgoingHttp
from tests.support.ports import free_port
from tests.support.weather_server import WeatherServer

pytestmark = pytest.mark.anyio

PATH = "/v1/search"


@pytest.fixture
async def server() -> AsyncIterator[WeatherServer]:
    async with WeatherServer() as opened:
        yield opened


@pytest.fixture
async def http() -> AsyncIterator[OutgoingHttp]:
    opened = OutgoingHttp()
    yield opened
    await opened.close()


async def _failure(http: OutgoingHttp, url: str, *, within_s: float = 5.0) -> tuple[str, int | None]:
    with pytest.raises(OutgoingFailed) as failed:
        await http.get(f"{url}{PATH}", {"name": "x"}, within_s=within_s, most_bytes=100)
    return failed.value.failure, failed.value.status


async def test_a_body_is_returned_whole(server: WeatherServer, http: OutgoingHttp) -> None:
    server.instead[PATH] = lambda: web.Response(body=b"x" * 100)
    assert await http.get(f"{server.url}{PATH}", {"name": "a b"}, within_s=5, most_bytes=100) == b"x" * 100
    assert server.asked == [(PATH, {"name": "a b"})]


async def test_a_longer_body_is_not_read(server: WeatherServer, http: OutgoingHttp) -> None:
    server.instead[PATH] = lambda: web.Response(body=b"x" * 101)
    assert await _failure(http, server.url) == ("too_large", None)


async def test_a_redirect_is_not_followed(server: WeatherServer, http: OutgoingHttp) -> None:
    server.instead[PATH] = lambda: web.Response(status=307, headers={"Location": "/v1/forecast"})
    assert await _failure(http, server.url) == ("status", 307)
    assert len(server.asked) == 1


async def test_what_takes_too_long_is_given_up(server: WeatherServer, http: OutgoingHttp) -> None:
    server.hold("x")
    assert await _failure(http, server.url, within_s=0.05) == ("slow", None)


async def test_a_server_that_is_not_there(http: OutgoingHttp) -> None:
    assert await _failure(http, f"http://127.0.0.1:{free_port()}") == ("unreachable", None)
    assert await _failure(http, "http://") == ("unreachable", None)
