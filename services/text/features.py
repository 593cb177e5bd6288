"""Features of a message beside its words: whether it states or only asks, and what values it carries."""

import re
import unicodedata
from collections.abc import Collection
from typing import Literal, get_args

from services.text.clauses import statements
from services.text.language import Language, language_of
from services.text.tokenizer import simplified_text

Feature = Literal["states", "oneself", "number", "time", "name", "place", "corrects"]
FEATURES: tuple[Feature, ...] = get_args(Feature)

_MOST_CHARACTERS = 2_000

# A message that only orders something done says nothing of its user. Verbs that are said to an assistant.
_ORDERS_ENGLISH = re.compile(
    r"^(?:please |now |ok(?:ay)?,? |and |then |also |just |can you |could you )*"
    r"(?:write|rewrite|draft|compose|give|tell|show|list|explain|describe|translate|summari[sz]e|recommend|suggest|"
    r"make|create|generate|find|search|look up|calculate|compute|convert|compare|help|remind|check|fix|correct|"
    r"proofread|play|set|open|read|continue|repeat|forget|delete|remove|erase|stop|try|imagine|pretend|act|define|"
    r"plan|name|choose|pick|guess|format|sort|more|another|again)\b(?! (?:me )?that\b)"
)
_ORDERS_CHINESE = re.compile(
    r"^(?:请你?|麻烦你?|你|再|先|那|就|能不能|可以|可不可以|快)*"
    r"(?:帮我|帮忙|给我|替我|写|改写|翻译|推荐|列出?|解释|介绍|总结|讲讲|讲个|说说|告诉我|提醒我|教我|教教我|算一?下|"
    r"查一?下|搜|找|画|编|起草|润色|想一?[句个]|做一?[张个份]|把.{1,20}(?:改|翻|换|删|写)|给.{1,12}写|忘[掉了记]|"
    r"删[掉除]|别再?提|不要再?提|继续|重复|来[一几][个首段张])"
)
_ONESELF_ENGLISH = re.compile(r"\b(?:i|i'm|i've|i'll|i'd|my|me|mine|myself|we|we're|we've|our|ours|us)\b")
_ONESELF_CHINESE = re.compile("我|咱|俺")
_SOMEBODY_CHINESE = re.compile("[你您它]")

_ENGLISH_NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen|half"
)
_NUMBER = re.compile(rf"\d|\b(?:{_ENGLISH_NUMBERS})\b|[两二三四五六七八九十百千万]|一[个只年百千万半天次名家]")
_TIME = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august|"
    r"september|october|november|december|today|tomorrow|yesterday|tonight|weekend|weekends|morning|evening|noon|"
    r"midnight|christmas|easter|spring|summer|autumn|winter)\b|\b(?:next|last|this|every) (?:week|month|year)\b|"
    r"\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}(?::\d\d| ?[ap]m)\b|\bo'clock\b|\bhalf past\b|\b(?:19|20)\d\d\b|"
    r"\b(?:at|by|from|around) (?:\d{1,2}|five|six|seven|eight|nine|ten|eleven|twelve)\b|"
    r"(?:周|星期|礼拜)[一二三四五六日天末]|[\d一二三四五六七八九十两]{1,8}(?:月|号|日|点)|明天|后天|今天|昨天|今晚|早上|"
    r"上午|中午|下午|晚上|半夜|凌晨|[上下这本]个?(?:周|月|星期|礼拜)|[明今去]年|春天|夏天|秋天|冬天|春节|过年|国庆|"
    r"寒假|暑假|年底|月底|周末"
)
_NAME_ENGLISH = re.compile(
    r"(?<=[\w,;:'\"(] )(?!(?:I|I'm|I've|I'll|I'd|OK)\b)[A-Z][\w.'-]*|\b[A-Z]{2,}\b|^[A-Z]\w+ (?:is|and)\b"
)
_NAME_CHINESE = re.compile(
    r"[叫姓](?!做|什么|啥|我)|名[叫是]|取名|[阿小老][\u4e00-\u9fff]{1,2}(?=[，。、是在和]|$)|"
    r"[\u4e00-\u9fff](?:阿姨|大夫|医生|老师|先生|女士|姐|哥|叔|师傅|教授|总|会计|律师)|[A-Za-z]{2,}|《[^《》]+》|“[^“”]+”"
)
_PLACE_ENGLISH = re.compile(
    r"\b(?:in|at|from|to|near|on|around|for) (?:the )?(?:[a-z]+ )?[A-Z]\w+|\b(?:street|road|avenue|city|town|"
    r"library|garden|hospital|school|office|gym|station|university|hotel|restaurant|cafe|centre|center|park|church|"
    r"airport|floor)\b"
)
_PLACE_CHINESE = re.compile(
    r"[\u4e00-\u9fff](?:省|市|区|县|镇|村|路|街|巷|站|馆|店|园|楼|山|湖|医院|学校|大学|公司|酒店|小区|机场|广场|中心)|"
    r"[在到去从来住回][\u4e00-\u9fff]{2}"
)
_CORRECTS = re.compile(
    r"\b(?:actually|no wait|sorry,? i meant|i meant|correction|change of plans?|instead|no longer|not any ?more|"
    r"any ?more|moved to|switched to|changed to|these days|as of now|from now on|is out|gave up|new one)\b|"
    r"\b(?:my|our|the|a) new\b|\bnow\b|\bis gone\b|"
    r"说错了|不对|其实|改到|改成|换成|换到|换了|变成|计划有变|不再|现在|如今|已经不|不是.{1,12}是|从今|新的|不做了|不干了"
)


def features(text: str, role: Literal["user", "assistant"]) -> frozenset[Feature]:
    """Features of a message.

    `states`: it says something beside asking or ordering. `oneself`: it speaks of its speaker, or in Chinese names
    nobody else. `number`, `time`, `name`, `place`: it may carry such a value. `corrects`: it may replace what was
    said before.
    """
    folded = simplified_text(text[:_MOST_CHARACTERS]).replace("’", "'")
    language = language_of([text])
    found: set[Feature] = set()
    if states(text):
        found.add("states")
    if _speaks_of_oneself(folded, language) and role == "user":
        found.add("oneself")
    if _NUMBER.search(folded):
        found.add("number")
    if _TIME.search(folded):
        found.add("time")
    written = unicodedata.normalize("NFKC", text[:_MOST_CHARACTERS])
    if _NAME_ENGLISH.search(written) or (language == "zh" and _NAME_CHINESE.search(folded)):
        found.add("name")
    if _PLACE_ENGLISH.search(written) or (language == "zh" and _PLACE_CHINESE.search(folded)):
        found.add("place")
    if _CORRECTS.search(folded):
        found.add("corrects")
    return frozenset(found)


def states(text: str) -> bool:
    """Whether a message says something, and does not only ask or order."""
    return any(
        not _ORDERS_ENGLISH.search(clause.folded) and not _ORDERS_CHINESE.search(clause.folded)
        for clause in statements(text)
    )


def _speaks_of_oneself(folded: str, language: Language) -> bool:
    if language == "zh":
        return bool(_ONESELF_CHINESE.search(folded)) or not _SOMEBODY_CHINESE.search(folded)
    return bool(_ONESELF_ENGLISH.search(folded))


_EXPECTS_ENGLISH: tuple[tuple[frozenset[Feature], re.Pattern[str]], ...] = (
    (frozenset(["name"]), re.compile(r"\b(?:who|whom|whose|who's)\b|\b(?:called|named)\b|\bname\b")),
    (
        frozenset(["place"]),
        re.compile(r"\bwhere\b|\b(?:which|what) (?:city|town|country|place|street|hospital|school)\b|\baddress\b"),
    ),
    (
        frozenset(["time"]),
        re.compile(r"\bwhen\b|\b(?:what|which) (?:time|days?|date|month|year|weekdays?)\b|\bhow (?:often|soon)\b"),
    ),
    (
        frozenset(["number"]),
        re.compile(r"\bhow (?:many|much|old|tall|long|big|far|high)\b|\b(?:number|size|price|cost)\b"),
    ),
)
_EXPECTS_CHINESE: tuple[tuple[frozenset[Feature], re.Pattern[str]], ...] = (
    (frozenset(["name"]), re.compile(r"谁|叫什么|叫啥|名字|哪位|姓什么|贵姓|什么名|哪家")),
    (
        frozenset(["place"]),
        re.compile(r"哪里|哪儿|在哪|去哪|住哪|哪个(?:城市|地方|区|省|国家|小区|医院|学校)|什么地方|地址"),
    ),
    (
        frozenset(["time"]),
        re.compile(r"什么时候|几点|几号|几月|哪天|哪一天|哪几天|星期几|周几|什么时间|啥时候|何时"),
    ),
    (
        frozenset(["number"]),
        re.compile(r"多少|几(?![点号月天])[\u4e00-\u9fff]|多大|多高|多久|多长|多远|第几|号码|密码"),
    ),
)


def expected(question: str, language: Language) -> frozenset[Feature]:
    """The kinds of value that a question asks for."""
    folded = simplified_text(question)
    rules = _EXPECTS_CHINESE if language == "zh" else _EXPECTS_ENGLISH
    return frozenset(kind for kinds, pattern in rules if pattern.search(folded) for kind in kinds)


def fits(found: Collection[Feature], wanted: Collection[Feature]) -> bool:
    """Whether a text may carry a value of a wanted kind; true if no kind is wanted."""
    return not wanted or any(kind in found for kind in wanted)
