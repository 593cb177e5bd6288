"""`get_weather`: the weather in a city, from an Open-Meteo server, and the questions that ask for it."""

import asyncio
import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

from langchain_core.tools import ToolException
from pydantic import BaseModel, Field, ValidationError, model_validator

from services.platform.outgoing import OutgoingFailed, OutgoingHttp
from services.text.language import Language, language_of
from services.text.marks import one_line
from services.tools.places import zone_of, zones
from services.tools.tool import QuickMatch, RegisteredTool, ToolServices, service_tool

WITHIN_S = 6.0
"""Seconds for both requests together."""
_MOST_BYTES = 256 * 1024
_DAYS = 3
_SHORTEST = 2
"""Minimum number of characters in the name of a place."""
_SUFFIXES = ("特别行政区", "自治州", "自治区", "地区", "市", "省", "县", "区", " city")

_CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m"
_DAILY = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max"

Number = Annotated[float, Field(allow_inf_nan=False, strict=False)]
Text = Annotated[str, Field(max_length=200)]


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


async def _place(http: OutgoingHttp, url: str, city: str, language: Language) -> Place:
    for name in _variants(city):
        params = {"name": name, "count": "1", "language": language, "format": "json"}
        if found := (await _get(http, f"{url.rstrip('/')}/v1/search", params, _Found)).results:
            return found[0]
    raise ToolException(f"The weather service knows no place named {city[:100]}.")


async def _forecast(http: OutgoingHttp, url: str, place: Place) -> Forecast:
    params = {
        "latitude": f"{place.latitude:.4f}",
        "longitude": f"{place.longitude:.4f}",
        "current": _CURRENT,
        "daily": _DAILY,
        "timezone": "auto",
        "forecast_days": str(_DAYS),
    }
    return await _get(http, f"{url.rstrip('/')}/v1/forecast", params, Forecast)


async def _get(http: OutgoingHttp, url: str, params: dict[str, str], form: type[Answer]) -> Answer:
    try:
        return form.model_validate_json(await http.get(url, params, within_s=WITHIN_S, most_bytes=_MOST_BYTES))
    except OutgoingFailed as error:
        raise ToolException(_REASONS[error.failure].format(status=error.status)) from error
    except ValidationError as error:
        raise ToolException("The weather service's answer cannot be read.") from error


_REASONS = {
    "unreachable": "The weather service cannot be reached.",
    "slow": "The weather service did not answer in time.",
    "status": "The weather service answered with an error (HTTP {status}).",
    "too_large": "The weather service's answer cannot be read: it is too long.",
}


def _variants(city: str) -> Iterator[str]:
    """Return the name of a city, followed by the name without a suffix such as 市."""
    yield city
    for suffix in _SUFFIXES:
        if city.lower().endswith(suffix) and len(short := city[: -len(suffix)]) >= _SHORTEST:
            yield short
            return


# WMO weather interpretation codes (WW), as Open-Meteo gives them.
_CODES: dict[int, tuple[str, str]] = {
    0: ("晴", "clear sky"),
    1: ("大致晴朗", "mainly clear"),
    2: ("局部多云", "partly cloudy"),
    3: ("阴", "overcast"),
    45: ("雾", "fog"),
    48: ("雾凇", "depositing rime fog"),
    51: ("小毛毛雨", "light drizzle"),
    53: ("毛毛雨", "moderate drizzle"),
    55: ("浓毛毛雨", "dense drizzle"),
    56: ("轻微冻毛毛雨", "light freezing drizzle"),
    57: ("强冻毛毛雨", "dense freezing drizzle"),
    61: ("小雨", "slight rain"),
    63: ("中雨", "moderate rain"),
    65: ("大雨", "heavy rain"),
    66: ("轻微冻雨", "light freezing rain"),
    67: ("强冻雨", "heavy freezing rain"),
    71: ("小雪", "slight snow fall"),
    73: ("中雪", "moderate snow fall"),
    75: ("大雪", "heavy snow fall"),
    77: ("米雪", "snow grains"),
    80: ("小阵雨", "slight rain showers"),
    81: ("阵雨", "moderate rain showers"),
    82: ("强阵雨", "violent rain showers"),
    85: ("小阵雪", "slight snow showers"),
    86: ("大阵雪", "heavy snow showers"),
    95: ("雷暴", "thunderstorm"),
    96: ("雷暴伴小冰雹", "thunderstorm with slight hail"),
    99: ("雷暴伴大冰雹", "thunderstorm with heavy hail"),
}

_WORDS = {
    "zh": {
        "head": "{place} 的天气，当地时间 {time}（{zone}）。",
        "now": "现在：{sky}，{temperature}°C",
        "feels": "，体感 {}°C",
        "humidity": "，湿度 {}%",
        "wind": "，风速 {} km/h",
        "day": "{date}：{sky}，{low}～{high}°C",
        "rain": "，降水概率 {}%",
        "unknown": "天气代码 {}",
        "end": "。",
    },
    "en": {
        "head": "Weather in {place}, local time {time} ({zone}).",
        "now": "Now: {sky}, {temperature}°C",
        "feels": ", feels like {}°C",
        "humidity": ", humidity {}%",
        "wind": ", wind {} km/h",
        "day": "{date}: {sky}, {low} to {high}°C",
        "rain": ", precipitation probability {}%",
        "unknown": "weather code {}",
        "end": ".",
    },
}


def weather_text(place: Place, forecast: Forecast, language: Language) -> str:
    """Place, time, present weather and coming days; missing values are left out or a dash."""
    words, now, daily = _WORDS[language], forecast.current, forecast.daily
    names = dict.fromkeys(one_line(name) for name in (place.name, place.admin1, place.country) if name)
    time = one_line(now.time).replace("T", " ")
    measured = {
        "feels": now.apparent_temperature,
        "humidity": now.relative_humidity_2m,
        "wind": now.wind_speed_10m,
    }
    more = [words[name].format(f"{value:g}") for name, value in measured.items() if value is not None]
    present = words["now"].format(sky=_sky(now.weather_code, language), temperature=f"{now.temperature_2m:g}")
    lines = [
        words["head"].format(place=", ".join(names), time=time, zone=one_line(forecast.timezone)),
        "".join([present, *more, words["end"]]),
    ]
    highs_and_lows = zip(daily.temperature_2m_min, daily.temperature_2m_max, strict=True)
    for day, (low, high) in enumerate(highs_and_lows):
        sky, rain = _sky(daily.weather_code[day], language), daily.precipitation_probability_max[day]
        told = words["day"].format(date=one_line(daily.time[day]), sky=sky, low=_shown(low), high=_shown(high))
        lines.append(told + (words["rain"].format(f"{rain:g}") if rain is not None else "") + words["end"])
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _sky(code: int | None, language: Language) -> str:
    if code is None:
        return "–"
    chinese, english = _CODES.get(code, ("", ""))
    return (chinese if language == "zh" else english) or _WORDS[language]["unknown"].format(code)


_CHINESE = "[\u3400-\u9fff]"
_LIST_ZH = re.compile("、|,|以及|还有|和|与|跟|及")
_LIST_EN = re.compile(r",? and | & ", re.IGNORECASE)

_WHEN_ZH = (
    "(?:(?:今天|今日|今儿|明天|明日|后天)(?:早上|上午|中午|下午|晚上|夜里)?|现在|目前|当前|此刻|这会儿|今晚|明晚|今早|明早"
    "|这[两几]天|近几天|(?:未来|接下来)[两三几]天)"
)
_ZH = f"(?:{_WHEN_ZH}的?)?(?P<places>[\u3400-\u9fffA-Za-z'、, -]{{2,60}}?) ?(?:{_WHEN_ZH})?的?"
_MORE_ZH = "(?:,(?P<more>[\u3400-\u9fffA-Za-z' -]{2,20}?)呢)?"
_COLD_ZH = "热不热|冷不冷|热吗|冷吗"
_ASKED_ZH = f"怎么样|怎样|如何|咋样|好不好|好吗|什么样|什么情况|{_COLD_ZH}|会下雨吗|多少度?|几度"
_HOW_ZH = f"(?:{_WHEN_ZH})?[会是]?(?:{_ASKED_ZH})[了呢]?"
_FALLS_ZH = "(?:下雨|下雪|有雨|有雪|刮风)"

_WHEN_EN = (
    "(?:today|tonight|(?:right |just )?now|currently|at the moment|(?:this|tomorrow) (?:morning|afternoon|evening)"
    "|tomorrow|these days|(?:the )?day after tomorrow|(?:for|over|in) the next (?:few|two|three|2|3) days)"
)
_THEN_EN = f"(?:,? {_WHEN_EN})?"
_EN = "(?P<places>[a-z\u00c0-\u024f][a-z\u00c0-\u024f', -]{0,60}?)"
_AT_EN = f"{_THEN_EN} (?:in|for|at) {_EN}{_THEN_EN}(?: like)?{_THEN_EN}"
_ASKS_EN = "(?:what(?:'s| is| are|s|'ll| will)|how(?:'s| is|s|'ll| will)) "
_WHAT_EN = f"(?:{_ASKS_EN})?(?:the )?(?:current |today's |tomorrow's )?"
_TOPIC_EN = "(?:weather(?: forecast| report| conditions?)?|forecast|temperature)"
_BE_EN = "(?: going to be| gonna be| be)?(?: like)?"
_FEEL_EN = "(?:hot|cold|warm|sunny|cloudy|windy|humid)"

_PATTERNS = (
    f"{_ZH}(?:天气(?:预报|情况|状况)?|气温|温度)(?:{_HOW_ZH})?{_MORE_ZH}",
    f"{_ZH}(?:会?是)?什么天气",
    f"{_ZH}(?:会不会|有没有|是不是(?:要|在)?|是否会?)(?:要|在)?{_FALLS_ZH}",
    f"{_ZH}[会要在]?{_FALLS_ZH}了?(?:吗|么|没有?)?",
    f"{_ZH}(?:多少度|几度|多热|多冷|{_COLD_ZH}|(?:需要|要不要|用不用|要|用)带雨?伞吗?)了?",
    f"{_WHAT_EN}{_TOPIC_EN}{_BE_EN}{_AT_EN}",
    f"{_WHAT_EN}{_EN}(?:'s)? {_TOPIC_EN}{_BE_EN}{_THEN_EN}",
    f"(?:is it|will it|is it going to|does it) (?:be )?(?:rain|raining|rainy|snow|snowing|{_FEEL_EN}){_AT_EN}",
    f"how {_FEEL_EN} (?:is it|will it be|is it going to be){_AT_EN}",
    f"(?:do|will|should) i (?:need|take|bring)(?: to take| to bring)? an umbrella{_AT_EN}",
)


def _cities(match: re.Match[str]) -> list[dict[str, Any]]:
    """Return the cities that a question names, if all are well known. A question with any other word may mean
    something else, so the model reads it."""
    places = [place for span in match.groupdict().values() if span for place in _places(span)]
    return [{"city": place} for place in places] if all(map(_is_known, places)) else []


def _is_known(place: str) -> bool:
    return zone_of(place.partition(",")[0]) is not None


def _places(span: str) -> list[str]:
    """The places that a span lists; “Paris, France” is one."""
    if re.search(_CHINESE, span):
        return _chinese_places(span)
    listed = _LIST_EN.split(span)
    if len(listed) > 1:
        listed = [place for part in listed for place in part.split(",")]
    return [place.strip(" ,") for place in listed if place.strip(" ,")]


def _chinese_places(span: str) -> list[str]:
    """Split between places, but not inside a name such as 呼和浩特."""
    parts = _LIST_ZH.split(span)
    found: list[str] = []
    start, end = 0, 0
    for part in parts:
        end = span.index(part, end) + len(part)
        name = span[start:end].strip(" 、,")
        if len(name) < _SHORTEST and end < len(span):
            continue
        found.append(name)
        rest = _LIST_ZH.match(span, end)
        start = end = rest.end() if rest else end
    return found


City = Annotated[str, Field(min_length=1, max_length=100, description="Its name alone, as the user wrote it")]


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if a weather server is configured."""
    http, url = services.http, services.weather_url
    if http is None or not url:
        return None
    zones()  # loaded before the first message needs them

    @service_tool
    async def get_weather(city: City) -> str:
        """Weather in a city: now and three days."""
        language = language_of([city])
        try:
            async with asyncio.timeout(WITHIN_S):
                place = await _place(http, services.weather_geocoding_url or url, city.strip(), language)
                return weather_text(place, await _forecast(http, url, place), language)
        except TimeoutError as error:
            raise ToolException(_REASONS["slow"]) from error

    return RegisteredTool(get_weather, timeout_s=8.0, quick=QuickMatch(_PATTERNS, _cities), priority=20)


TOOL = make_tool
