"""An Open-Meteo server on the loopback: it answers in the recorded form, and can be made slow or wrong."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Answer = Callable[[], web.StreamResponse]

BEIJING: dict[str, Any] = {
    "id": 1816670,
    "name": "北京",
    "latitude": 39.9075,
    "longitude": 116.39723,
    "country_code": "CN",
    "timezone": "Asia/Shanghai",
    "country": "中国",
    "admin1": "北京市",
}
SHANGHAI = {
    **BEIJING,
    "id": 1796236,
    "name": "上海",
    "latitude": 31.22222,
    "longitude": 121.45806,
    "admin1": "上海",
}
PARIS = {
    **BEIJING,
    "id": 2988507,
    "name": "Paris",
    "latitude": 48.85341,
    "longitude": 2.3488,
    "timezone": "Europe/Paris",
    "country": "France",
    "admin1": "Île-de-France",
}
FORECAST: dict[str, Any] = {
    "latitude": 39.875,
    "longitude": 116.375,
    "timezone": "Asia/Shanghai",
    "timezone_abbreviation": "GMT+8",
    "current_units": {
        "time": "iso8601",
        "interval": "seconds",
        "temperature_2m": "°C",
        "weather_code": "wmo code",
    },
    "current": {
        "time": "2026-11-21T18:15",
        "interval": 900,
        "temperature_2m": 3.1,
        "apparent_temperature": -0.4,
        "relative_humidity_2m": 45,
        "weather_code": 3,
        "wind_speed_10m": 8.6,
    },
    "daily_units": {"time": "iso8601", "weather_code": "wmo code", "temperature_2m_max": "°C"},
    "daily": {
        "time": ["2026-11-21", "2026-11-22", "2026-11-23"],
        "weather_code": [3, 61, 71],
        "temperature_2m_max": [7.2, 5.0, 1.4],
        "temperature_2m_min": [-1.3, 0.2, -4.8],
        "precipitation_probability_max": [0, 65, None],
    },
}


class WeatherServer:
    """`async with WeatherServer() as server: … server.url`."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Path and query of each request."""
        self.places: dict[str, dict[str, Any]] = {
            "北京": BEIJING,
            "上海": SHANGHAI,
            "Paris": PARIS,
            "Paris, France": PARIS,
        }
        self.instead: dict[str, Answer] = {}
        """What a path answers instead."""
        self.abandoned: asyncio.Queue[str] = asyncio.Queue()
        """Names of places for which a client did not wait."""
        self._held: dict[str, asyncio.Event] = {}
        self._runner: web.AppRunner | None = None

    def hold(self, name: str) -> None:
        """Hold requests for a place of this name until it is released."""
        self._held[name] = asyncio.Event()

    def release(self, name: str) -> None:
        """Answer them."""
        self._held[name].set()

    def names_asked(self) -> list[str]:
        """The names of places that were sought."""
        return [query["name"] for path, query in self.asked if path == "/v1/search"]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/v1/search", self._search)
        app.router.add_get("/v1/forecast", self._forecast)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        name = request.query["name"]
        try:
            if name in self._held:
                await self._held[name].wait()
        except asyncio.CancelledError:
            self.abandoned.put_nowait(name)
            raise
        if instead := self.instead.get(request.path):
            return instead()
        found = {"results": [self.places[name]]} if name in self.places else {}
        return web.json_response({**found, "generationtime_ms": 0.4})

    async def _forecast(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        if instead := self.instead.get(request.path):
            return instead()
        return web.json_response(FORECAST)

    def _note(self, request: web.Request) -> None:
        self.asked.append((request.path, dict(request.query)))
