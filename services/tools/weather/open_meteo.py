"""Client of an Open-Meteo server, or one with the same API: places and their weather."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from services.platform.outgoing import OutgoingFailed, OutgoingHttp

WITHIN_S = 6.0
"""Seconds for both requests together."""
_MOST_BYTES = 256 * 1024
_DAYS = 3
_SHORTEST_NAME = 2
_SUFFIXES = ("特别行政区", "自治州", "自治区", "地区", "市", "省", "县", "区", " city")

_CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m"
_DAILY = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max"

Number = Annotated[float, Field(allow_inf_nan=False, strict=False)]
Text = Annotated[str, Field(max_length=200)]


class WeatherUnavailable(Exception):
    """No weather is available; the message says why."""


class Place(BaseModel):
    """Where a city is."""

    name: Text
    latitude: Number
    longitude: Number
    country: Text | None = None
    admin1: Text | None = None


class Current(BaseModel):
    """The weather now."""

    time: Text
    temperature_2m: Number
    apparent_temperature: Number | None = None
    relative_humidity_2m: Number | None = None
    weather_code: int
    wind_speed_10m: Number | None = None


class Daily(BaseModel):
    """The weather of some days: lists of one length."""

    time: list[Text] = Field(min_length=1, max_length=16)
    weather_code: list[int | None]
    temperature_2m_max: list[Number | None]
    temperature_2m_min: list[Number | None]
    precipitation_probability_max: list[Number | None]

    @model_validator(mode="after")
    def _of_one_length(self) -> "Daily":
        if any(len(values) != len(self.time) for values in vars(self).values()):
            raise ValueError("lists of different lengths")
        return self


class Forecast(BaseModel):
    """The weather somewhere, in local time."""

    timezone: Text
    current: Current
    daily: Daily


class _Found(BaseModel):
    results: list[Place] = []


Answer = TypeVar("Answer", bound=BaseModel)


class OpenMeteo:
    """Asks a forecast server and a geocoding server."""

    def __init__(self, http: OutgoingHttp, url: str, geocoding_url: str, *, within_s: float = WITHIN_S) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._geocoding_url = geocoding_url.rstrip("/")
        self._within_s = within_s

    async def weather(self, city: str, language: str) -> tuple[Place, Forecast]:
        """Where the city is, and the weather there.

        Raises:
            WeatherUnavailable: no such city is known, or a server does not answer as it should.
        """
        try:
            async with asyncio.timeout(self._within_s):
                place = await self._place(city, language)
                return place, await self._forecast(place)
        except TimeoutError as error:
            raise WeatherUnavailable("The weather service did not answer in time.") from error

    async def _place(self, city: str, language: str) -> Place:
        for name in _variants(city):
            params = {"name": name, "count": "1", "language": language, "format": "json"}
            if found := (await self._get(f"{self._geocoding_url}/v1/search", params, _Found)).results:
                return found[0]
        raise WeatherUnavailable(f"The weather service knows no place named {city[:100]}.")

    async def _forecast(self, place: Place) -> Forecast:
        params = {
            "latitude": f"{place.latitude:.4f}",
            "longitude": f"{place.longitude:.4f}",
            "current": _CURRENT,
            "daily": _DAILY,
            "timezone": "auto",
            "forecast_days": str(_DAYS),
        }
        return await self._get(f"{self._url}/v1/forecast", params, Forecast)

    async def _get(self, url: str, params: dict[str, str], form: type[Answer]) -> Answer:
        try:
            body = await self._http.get(url, params, within_s=self._within_s, most_bytes=_MOST_BYTES)
            return form.model_validate_json(body)
        except OutgoingFailed as error:
            raise WeatherUnavailable(_REASONS[error.failure].format(status=error.status)) from error
        except ValidationError as error:
            raise WeatherUnavailable("The weather service's answer cannot be read.") from error


_REASONS = {
    "unreachable": "The weather service cannot be reached.",
    "slow": "The weather service did not answer in time.",
    "status": "The weather service answered with an error (HTTP {status}).",
    "too_large": "The weather service's answer cannot be read: it is too long.",
}


def _variants(city: str) -> Iterator[str]:
    """The name, then the name without its kind of place."""
    yield city
    for suffix in _SUFFIXES:
        if city.lower().endswith(suffix) and len(short := city[: -len(suffix)]) >= _SHORTEST_NAME:
            yield short
            return
