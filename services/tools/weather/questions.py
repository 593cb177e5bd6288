"""Questions about the weather somewhere, in Chinese and English."""

import re
from typing import Any

from services.tools.places import may_be_chinese_place, zone_of
from services.tools.quick import QuickMatch

_MOST_WORDS = 4
_SHORTEST = 2

# A span names places only if nothing in it contradicts that.
_NO_CHINESE_PLACE = re.compile(
    "[我你您他她它谁咱哪这昨怎想说问讲写译了吗呢么很的第]|什么|为什|那[里边儿天时个]|喜欢|讨厌|聊天|聊聊|没有|不是|一[个下些]|有没|是否"
    "|天气|气温|温度|今天|今日|明天|后天|现在|目前|当前|今晚|明晚|去年|今年|明年|前天|上周|上个|上月|下周|下个|下月|本周|周末|星期|最近|月份|年代"
    "|恶劣|极端|室[内外]|[阴晴雨雪]天|阴雨|股|户外|外[面边]|里面|附近|当地|本地|城市|市区|郊区|那个|[春夏秋冬][天季日]|季节|春节|国庆|关于|火星|月球|太空|宇宙|地球|太阳|大海|世界|全球"
    "|出差|旅[游行]|适合|记录|描述|形容|小说|电影|游戏|故事|^[去到在飞看跟]"
)
_NO_ENGLISH_PLACE = """
a an the my our your his her their its this that these those there here it is was were in on at for with when if
like as by than to from about and or but what how why who where which do does did will be not no any some
yesterday today tomorrow now last next past week weekend month year day night morning afternoon evening summer
winter spring autumn fall season january february march april may june july august september october november
december monday tuesday wednesday thursday friday saturday sunday christmas easter general particular detail
space mars moon sun earth world universe hell heaven oven fridge freezer room house home office kitchen bedroom
outside inside indoors outdoors minecraft game movie book novel song poem story history celsius fahrenheit
kelvin english french german spanish chinese japanese degrees
"""
_WITHIN_NAMES = frozenset({"of", "de", "la", "le", "del", "di", "do", "da", "am", "sur", "upon"})
"""Words of names that are not capitalised; others are, unless the city is well known."""

_CHINESE = "[\u3400-\u9fff]"
_LIST_ZH = re.compile("、|,|以及|还有|和|与|跟|及")
_LIST_EN = re.compile(r",? and | & ", re.IGNORECASE)

_WHEN_ZH = (
    "(?:(?:今天|今日|今儿|明天|明日|后天)(?:早上|上午|中午|下午|晚上|夜里)?|现在|目前|当前|此刻|这会儿|今晚|明晚|今早|明早"
    "|这[两几]天|近几天|(?:未来|接下来)[两三几]天)"
)
_ZH = f"(?:{_WHEN_ZH}的?)?(?P<places>[\u3400-\u9fffA-Za-z'、, -]{{2,60}}?) ?(?:{_WHEN_ZH})?的?"
_MORE_ZH = "(?:,(?P<more>[\u3400-\u9fffA-Za-z' -]{2,20}?)呢)?"
_TOPIC_ZH = "天气(?:预报|情况|状况)?"
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
_AT_EN = f"{_THEN_EN} (?:in|at) {_EN}{_THEN_EN}"
_THE_EN = "(?:the )?(?:current |today's |tomorrow's )?"
_WHAT_EN = f"(?:what(?:'s| is| are|s|'ll| will)|how(?:'s| is|s|'ll| will)) {_THE_EN}"
_TOPIC_EN = "weather(?: forecast| report| conditions?)?"
_BE_EN = "(?: going to be| gonna be| be)?(?: like)?"

_ANYWHERE = (
    f"{_ZH}(?:{_TOPIC_ZH}|气温){_HOW_ZH}{_MORE_ZH}",
    f"{_ZH}(?:天气预报|(?:会?是)?什么天气)",
    f"{_ZH}(?:会不会|有没有|是不是(?:要|在)?|是否会?)(?:要|在)?{_FALLS_ZH}",
    f"{_ZH}[会要在]?{_FALLS_ZH}了?(?:吗|么|没有?)",
    f"{_WHAT_EN}{_TOPIC_EN}{_BE_EN}{_THEN_EN} (?:in|for|at) {_EN}{_THEN_EN}(?: like)?{_THEN_EN}",
    f"{_THE_EN}{_TOPIC_EN}{_THEN_EN} (?:in|for) {_EN}{_THEN_EN}",
    f"{_WHAT_EN}temperature{_BE_EN}{_AT_EN}",
    f"(?:is it|will it|is it going to|does it) (?:be )?(?:rain|raining|rainy|snow|snowing){_AT_EN}",
    f"(?:do|will|should) i (?:need|take|bring)(?: to take| to bring)? an umbrella{_AT_EN}",
)
"""Valid with any word that may be a place."""
_KNOWN = (
    f"{_ZH}(?:{_TOPIC_ZH}|气温|温度)(?:{_HOW_ZH})?{_MORE_ZH}",
    f"{_ZH}(?:多少度|几度|多热|多冷|{_COLD_ZH}|(?:需要|要不要|用不用|要|用)带雨?伞吗?)了?",
    f"(?:{_WHAT_EN}|{_THE_EN})forecast{_BE_EN}{_THEN_EN} (?:in|for) {_EN}{_THEN_EN}",
    f"how (?:hot|cold|warm|humid|windy) (?:is it|will it be|is it going to be){_AT_EN}",
    f"(?:is it|will it be|is it going to be) (?:hot|cold|warm|sunny|cloudy|windy|humid){_AT_EN}",
    f"{_EN}(?:'s)? weather(?: forecast| report)?{_THEN_EN}",
    f"{_WHAT_EN}{_EN}(?:'s)? (?:weather|temperature){_BE_EN}{_THEN_EN}",
)
"""Valid only with well-known cities: with another word it would be another question."""


def _cities(match: re.Match[str]) -> list[dict[str, Any]]:
    places = [place for span in match.groupdict().values() if span for place in _places(span)]
    fits = zone_of if match.re.pattern in _KNOWN else _may_be_place
    return [{"city": place} for place in places] if all(map(fits, places)) else []


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


def _may_be_place(place: str) -> bool:
    if re.search(_CHINESE, place):
        return not _NO_CHINESE_PLACE.search(place) and may_be_chinese_place(place)
    words = re.findall(r"[^\W\d_]+(?:'[a-z]+)?", place)
    named = all(word[0].isupper() or word in _WITHIN_NAMES for word in words)
    wrong = {word.lower() for word in words}.intersection(_NO_ENGLISH_PLACE.split())
    return 1 <= len(words) <= _MOST_WORDS and not wrong and (named or zone_of(place) is not None)


WEATHER_QUESTIONS = QuickMatch((*_ANYWHERE, *_KNOWN), _cities)
