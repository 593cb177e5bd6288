"""Which messages ask for a tool so plainly that it runs by itself, and which only look so."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.platform.outgoing import OutgoingHttp
from services.tools.registry import ToolRegistry
from services.tools.tool import LONGEST_MESSAGE, MOST_CALLS, ToolServices

REGISTRY = ToolRegistry.of_builtin_tools(ToolServices(http=OutgoingHttp(), weather_url="http://127.0.0.1:9"))

WEATHER = {
    "今天北京天气怎样？": ["北京"],
    "請問今天臺北天氣怎麼樣？": ["台北"],
    "北京、上海和呼和浩特今天天气怎么样？": ["北京", "上海", "呼和浩特"],
    "今天北京天气怎么样，上海呢？": ["北京", "上海"],
    "杭州今天要带伞吗？": ["杭州"],
    "你好，帮我查一下明天杭州的天气怎么样": ["杭州"],
    "Paris天气怎么样": ["Paris"],
    "哈尔滨现在多少度了": ["哈尔滨"],
    "北京天气怎么样,北京天气怎么样？": ["北京"],
    "what's the weather in Paris today": ["Paris"],
    "How’s the weather in Paris, France?": ["Paris, France"],
    "Can you tell me the weather in London and Paris, please?": ["London", "Paris"],
    "is it raining in seattle?": ["seattle"],
    "Tokyo weather": ["Tokyo"],
    "what's the temperature in Madrid right now": ["Madrid"],
}
TIME = {
    "现在几点": None,
    "現在幾點了？": None,
    "今天几号星期几？": None,
    "东京现在几点": "Asia/Tokyo",
    "What time is it?": None,
    "Could you please tell me today's date?": None,
    "What's the time in San Francisco right now?": "America/Los_Angeles",
}
NEITHER = """
香格里拉明天天气怎么样
昨天北京下雨了吗
下周北京天气怎么样
今天天气怎么样
火星天气怎么样
你觉得北京天气怎么样
小明问今天北京天气怎样
不要告诉我北京天气怎么样
我明天去北京，天气怎么样
翻译：今天北京天气怎样？
“今天北京天气怎样”用英语怎么说
烤箱温度多少
明天几点开会
nice weather
my friend asked what's the weather in Paris
What's the weather in Paris like in March?
what's the weather in Paris usually like
how hot is it in here
what's the forecast for sales
he asked what time it is
what time is it in Atlantis
What's the time complexity in quicksort
How do you say "what time is it" in French?
What time is it? Then write a poem about it.
"""


def _calls(message: str) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], dict(call["arguments"])) for call in REGISTRY.quick_calls(message)]


@pytest.mark.parametrize(("message", "cities"), WEATHER.items())
def test_the_weather_of_each_city_is_asked_for(message: str, cities: Sequence[str]) -> None:
    assert _calls(message) == [("get_weather", {"city": city}) for city in cities]


@pytest.mark.parametrize(("message", "zone"), TIME.items())
def test_the_time_is_asked_for_here_or_in_a_city(message: str, zone: str | None) -> None:
    assert _calls(message) == [("get_current_time", {"timezone": zone} if zone else {})]


@pytest.mark.parametrize("message", NEITHER.strip().splitlines())
def test_what_only_looks_like_a_question_is_left_to_the_model(message: str) -> None:
    assert _calls(message) == []


@pytest.mark.parametrize(
    "message",
    [
        "Hi! What's the weather in Paris, and what time is it in Tokyo?",
        "what time is it in Tokyo and what's the weather in Paris",
    ],
)
def test_several_questions_call_several_tools_in_the_order_of_their_priority(message: str) -> None:
    assert REGISTRY.quick_calls(message) == [
        {"id": "quick_1", "name": "get_current_time", "arguments": {"timezone": "Asia/Tokyo"}},
        {"id": "quick_2", "name": "get_weather", "arguments": {"city": "Paris"}},
    ]


@pytest.mark.parametrize(
    "message",
    [
        "Translate into French.\nWhat time is it?",
        "现在几点？" + "他说了很多。" * 900,
        "现在几点" + "呢" * LONGEST_MESSAGE,
        "北京、上海、广州、深圳、杭州和成都天气怎么样",
    ],
)
def test_long_texts_and_too_many_questions_are_left_to_the_model(message: str) -> None:
    assert _calls(message) == []


SAID = """
what 's the weather like in Paris and tokyo today , now ? time is it please
北京 天气 怎么样 和 、 今天 几点 了 吗 呢 ，
"""


@given(st.lists(st.sampled_from(SAID.split()), max_size=40), st.sampled_from(["", " "]))
def test_whatever_is_said_names_at_most_five_calls_and_always_the_same(words: list[str], between: str) -> None:
    message = between.join(words)
    calls = REGISTRY.quick_calls(message)
    assert calls == REGISTRY.quick_calls(message)
    assert len({(call["name"], str(call["arguments"])) for call in calls}) == len(calls) <= MOST_CALLS
    assert all(len(str(value)) <= LONGEST_MESSAGE for call in calls for value in call["arguments"].values())
