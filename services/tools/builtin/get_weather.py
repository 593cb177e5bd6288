"""`get_weather`: the weather in a city, from the server that the operator configured."""

from typing import Annotated

from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from services.text.language import language_of
from services.tools import places
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from services.tools.weather.open_meteo import OpenMeteo, WeatherUnavailable
from services.tools.weather.questions import WEATHER_QUESTIONS
from services.tools.weather.wording import weather_text

City = Annotated[str, Field(min_length=1, max_length=100, description="Its name alone, as the user wrote it")]


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if a weather server is configured."""
    if services.http is None or not services.weather_url:
        return None
    places.warm()
    geocoding_url = services.weather_geocoding_url or services.weather_url
    weather = OpenMeteo(services.http, services.weather_url, geocoding_url)
    return RegisteredTool(_over(weather), timeout_s=8.0, quick=WEATHER_QUESTIONS, priority=20)


def _over(weather: OpenMeteo) -> BaseTool:
    @service_tool
    async def get_weather(city: City) -> str:
        """Weather in a city: now and three days."""
        language = language_of([city])
        try:
            return weather_text(*await weather.weather(city.strip(), language), language)
        except WeatherUnavailable as error:
            raise ToolException(str(error)) from error

    return get_weather


TOOL = make_tool
