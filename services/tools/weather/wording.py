"""The weather in words: one compact text, in Chinese or English."""

from services.text.language import Language
from services.tools.weather.open_meteo import Current, Daily, Forecast, Place

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
    words = _WORDS[language]
    names = dict.fromkeys(_plain(name) for name in (place.name, place.admin1, place.country) if name)
    time = _plain(forecast.current.time).replace("T", " ")
    head = words["head"].format(place=", ".join(names), time=time, zone=_plain(forecast.timezone))
    days = [_day(forecast.daily, day, language) for day in range(len(forecast.daily.time))]
    return "\n".join([head, _now(forecast.current, language), *days])


def _now(current: Current, language: Language) -> str:
    words = _WORDS[language]
    sky = _sky(current.weather_code, language)
    parts = [words["now"].format(sky=sky, temperature=f"{current.temperature_2m:g}")]
    measured = {
        "feels": current.apparent_temperature,
        "humidity": current.relative_humidity_2m,
        "wind": current.wind_speed_10m,
    }
    parts += [words[name].format(f"{value:g}") for name, value in measured.items() if value is not None]
    return "".join(parts) + words["end"]


def _day(daily: Daily, day: int, language: Language) -> str:
    words = _WORDS[language]
    low, high = daily.temperature_2m_min[day], daily.temperature_2m_max[day]
    text = words["day"].format(
        date=_plain(daily.time[day]),
        sky=_sky(daily.weather_code[day], language),
        low=_shown(low),
        high=_shown(high),
    )
    rain = daily.precipitation_probability_max[day]
    return text + (words["rain"].format(f"{rain:g}") if rain is not None else "") + words["end"]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _sky(code: int | None, language: Language) -> str:
    if code is None:
        return "–"
    chinese, english = _CODES.get(code, ("", ""))
    return (chinese if language == "zh" else english) or _WORDS[language]["unknown"].format(code)


def _plain(text: str) -> str:
    """Keep text from another server on one line."""
    return " ".join(text.split())
