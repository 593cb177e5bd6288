"""Which messages ask for a tool so plainly that it runs by itself, and which only look so."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool

from services.platform.outgoing import OutgoingHttp
from services.tools.registry import ToolRegistry
from services.tools.tool import LONGEST_MESSAGE, MOST_CALLS, QuickMatch, RegisteredTool, ToolServices

REGISTRY = ToolRegistry.of_builtin_tools(ToolServices(http=OutgoingHttp(), weather_url="http://127.0.0.1:9"))

WEATHER = {
    "今天北京天气怎样？": ["北京"],
    "北京今天的天气怎么样啊": ["北京"],
    "請問今天臺北天氣怎麼樣？": ["台北"],
    "北京和上海今天天气怎么样": ["北京", "上海"],
    "北京、上海和呼和浩特今天天气怎么样？": ["北京", "上海", "呼和浩特"],
    "今天北京天气怎么样，上海呢？": ["北京", "上海"],
    "北京明天会下雨吗": ["北京"],
    "上海多少度": ["上海"],
    "杭州今天要带伞吗？": ["杭州"],
    "北京天气": ["北京"],
    "今天长春的天气好吗？谢谢！": ["长春"],
    "你好，帮我查一下明天杭州的天气怎么样": ["杭州"],
    "Paris天气怎么样": ["Paris"],
    "香港现在什么天气": ["香港"],
    "昆明后天会不会下雪": ["昆明"],
    "桂林天气预报": ["桂林"],
    "合肥后天天气怎么样呢": ["合肥"],
    "哈尔滨现在多少度了": ["哈尔滨"],
    "请告诉我西安未来三天的天气": ["西安"],
    "北京天气怎么样,北京天气怎么样？": ["北京"],
    "what's the weather in Paris today": ["Paris"],
    "What is the weather like in New York tomorrow?": ["New York"],
    "How’s the weather in Paris, France?": ["Paris, France"],
    "Can you tell me the weather in London and Paris, please?": ["London", "Paris"],
    "Can you check the weather in Munich for me?": ["Munich"],
    "is it raining in seattle?": ["seattle"],
    "how hot is it in Tokyo": ["Tokyo"],
    "Will it rain in Oslo tomorrow?": ["Oslo"],
    "Tokyo weather": ["Tokyo"],
    "what's Tokyo's weather like": ["Tokyo"],
    "do I need an umbrella in Seattle today?": ["Seattle"],
    "what's the temperature in Madrid right now": ["Madrid"],
    "what's the forecast for Berlin": ["Berlin"],
}
TIME = {
    "现在几点": None,
    "現在幾點了？": None,
    "请问几点了？": None,
    "今天星期几": None,
    "今天几号星期几？": None,
    "东京现在几点": "Asia/Tokyo",
    "现在纽约几点了": "America/New_York",
    "柏林时间几点了": "Europe/Berlin",
    "你知道现在几点吗": None,
    "time in Tokyo": "Asia/Tokyo",
    "What time is it?": None,
    "do you know what time it is?": None,
    "what's the date today?": None,
    "Could you please tell me today's date?": None,
    "What day is it today?": None,
    "what time is it in Berlin": "Europe/Berlin",
    "What's the time in San Francisco right now?": "America/Los_Angeles",
}
NEITHER = """
兰溪天气怎么样
香格里拉明天天气怎么样
weather in Bad Homburg
昨天北京天气很好
昨天北京下雨了吗
去年冬天北京天气怎么样
下周北京天气怎么样
我喜欢聊天气
今天天气怎么样
今天天气真好
外面天气怎么样
火星天气怎么样
极端天气怎么样
上周发布的手机怎么样
上海的房价怎么样
你觉得北京天气怎么样
小明问今天北京天气怎样
不要告诉我北京天气怎么样
北京天气怎么样我不关心
我明天去北京，天气怎么样
帮我写一首关于北京天气的诗
翻译：今天北京天气怎样？
“今天北京天气怎样”用英语怎么说
雨天天气怎么样
山顶天气怎么样
老家天气怎么样
明天比赛会下雨吗
婚礼当天会下雨吗
周六北京天气怎么样
大海天气怎么样
股票明天会下雪吗
天气之子怎么样
北京时间是什么意思
烤箱温度多少
发烧多少度
空调现在多少度
几点
会议几点了
明天几点开会
weather is a nice topic
nice weather
I love the weather in Paris
my friend asked what's the weather in Paris
what's the weather in the novel like
What's the weather in Paris like in March?
what's the weather in Paris yesterday
how is the weather in general
how hot is it in here
how hot is it in summer
what's the forecast for sales
what's the weather in literature
what's the weather in Paris usually like
what's the weather in Paris like in March
what's the weather in your city
is it hot in the kitchen
what's the current time complexity
he asked what time it is
what time is the meeting
what time is it in the movie
what time is it in Atlantis
Explain what time is it in physics
What's the time complexity in quicksort
How do you say "what time is it" in French?
Say `what time is it`
I am bored. What time is it?
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
        "What's the weather in Paris? And what time is it in Tokyo?",
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
        "What time is it? " * (LONGEST_MESSAGE // 10),
        "现在几点" + "呢" * LONGEST_MESSAGE,
        "",
        "?!。",
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


@given(st.text(max_size=LONGEST_MESSAGE))
def test_no_text_is_too_strange(text: str) -> None:
    assert isinstance(REGISTRY.quick_calls(text), list)


def _registry(*patterns: str) -> ToolRegistry:
    def echo(word: str = "") -> str:
        """Echo."""
        return word

    def arguments(match: re.Match[str]) -> list[dict[str, Any]]:
        return [{"word": word} for word in match[1].split("+") if word]

    tool = StructuredTool.from_function(echo)
    return ToolRegistry([RegisteredTool(tool, quick=QuickMatch(patterns, arguments))])


def test_a_tool_reads_the_arguments_of_each_call_or_declines() -> None:
    registry = _registry(r"echo(?: (.*))", r"repeat (.+)")
    assert [call["arguments"]["word"] for call in registry.quick_calls("Please echo a+b!")] == ["a", "b"]
    assert [call["arguments"]["word"] for call in registry.quick_calls("REPEAT c")] == ["c"]
    assert registry.quick_calls("echo +") == []
    assert registry.quick_calls("I say echo a") == []
    assert len(registry.quick_calls("echo " + "+".join("abcde"))) == MOST_CALLS
    assert registry.quick_calls("echo " + "+".join("abcdef")) == []


def test_without_quick_tools_nothing_is_looked_at() -> None:
    assert ToolRegistry([]).quick_calls("现在几点") == []
