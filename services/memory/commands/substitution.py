"""A statement with one value replaced by the one that holds: “My son is seven” and “I meant nine”."""

import re
from dataclasses import dataclass

from services.text.tokenizer import simplified, terms

_NUMBER = r"\d+(?:[.,:]\d+)*"
_ENGLISH_NUMBER = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|"
    r"seventeen|eighteen|nineteen|hundred|thousand|half|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
    r"(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?)"
)
_ORDINAL = r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:st|nd|rd|th))"
# Each character in one way only, and not in the midst of digits: otherwise a long number takes exponential time.
_CHINESE_NUMBER = r"(?<!\d)(?:[\d零〇一二三四五六七八九十廿卅百千万两半](?:[.,](?=\d))?){1,30}"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_UNITS = (
    "年级|岁|个月|个|只|条|位|公斤|斤|厘米|米|公里|块|元|万|楼|层|号楼|单元|年|天|周|小时|分钟|次|口|人|班|级|名|"
    "平米?|栋|室|号线|杯|瓶|本|张|度|码|点"
)
_CAPITALISED = "[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+"
_KINDS: dict[str, str] = {
    "weekday": r"\b(?:(?:next|this|last|first|second|third|fourth) )?"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|(?:第[一二三四]|最后一|下下|下|上|这|本)?个?(?:周|星期|礼拜)[一二三四五六日天末]",
    "date": rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b"
    rf"|\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\d{{4}}-\d\d-\d\d"
    rf"|{_CHINESE_NUMBER}月(?:初?{_CHINESE_NUMBER}[日号]?)?|{_CHINESE_NUMBER}[日号](?![码线楼院])",
    "month": rf"\b{_MONTH}\b",
    "day": r"\b(?:today|tonight|tomorrow|yesterday|the day after tomorrow)\b"
    r"|(?:大?后天|大?前天|明天|昨天|今天|今晚|明晚)",
    "time": r"\b\d{1,2}(?::\d\d)? ?(?:a\.?m\.?|p\.?m\.?|o'clock)|\b\d{1,2}:\d\d\b|\b(?:noon|midnight)\b"
    rf"|(?:上午|下午|早上|晚上|中午|凌晨|傍晚)?{_CHINESE_NUMBER}点(?:半|{_CHINESE_NUMBER}分?|钟|整)?",
    "part of a day": r"\b(?:morning|afternoon|evening|night)\b|(?:上午|下午|早上|晚上|中午|凌晨|傍晚)",
    "measure": rf"(?:第)?{_CHINESE_NUMBER}(?:{_UNITS})"
    rf"|\b{_NUMBER} ?(?:%|kg|cm|km|mg|lbs?|pounds|euros?|dollars?|years?|months?|weeks?|days?|hours?|minutes?|"
    r"miles?|people|kids|children|cats?|dogs?)\b|[$€£¥]\d[\d,.]*",
    "ordinal": rf"\b{_ORDINAL}\b(?: grade| floor| year)?",
    "number": rf"\b(?:{_NUMBER}|{_ENGLISH_NUMBER})\b|{_CHINESE_NUMBER}(?![点些个般样起直定旦])",
    "colour": r"\b(?:red|blue|green|yellow|black|white|brown|purple|pink|orange|grey|gray|beige|navy|turquoise|"
    r"silver|gold)\b|(?:红|蓝|绿|黄|黑|白|棕|紫|粉|橙|灰|银|金)色",
    "kin": r"\b(?:son|daughter|wife|husband|mother|father|mom|mum|dad|sister|brother|uncle|aunt|cousin|niece|"
    r"nephew|grandmother|grandfather|grandma|grandpa|girlfriend|boyfriend|partner|roommate|boss|colleague|"
    r"neighbou?r)\b|(?:儿子|女儿|老婆|老公|妈妈?|爸爸?|姐姐?|妹妹?|哥哥?|弟弟?|爷爷|奶奶|外公|外婆|叔叔|阿姨|"
    r"舅舅|姑姑|表[哥弟姐妹]|堂[哥弟姐妹]|侄子|侄女|外甥女?|同事|朋友|室友|邻居|老板)",
    "name": rf"(?<![.!?] )(?<!^)\b{_CAPITALISED}(?:(?: & | et | of | de |[ -]){_CAPITALISED})*\b",
}
_RULES = {kind: re.compile(pattern, 0 if kind == "name" else re.IGNORECASE) for kind, pattern in _KINDS.items()}
_OF_A_TIME = ("date", "weekday", "month", "day", "time", "number")
"""Kinds of values that one appointment has several of, those that contain others first."""
_PART_OF_DAY = re.compile(r"^(?:上午|下午|早上|晚上|中午|凌晨|傍晚)")
_UNIT = re.compile(rf"^(?:第)?{_CHINESE_NUMBER}|^{_NUMBER} ?", re.IGNORECASE)
_ATTACHED = re.compile(r"[a-z%°]+|[\u4e00-\u9fff]", re.IGNORECASE)
"""What stands at once after a number."""
_ENDS_IN_NUMBER = re.compile(rf"(?:\d|{_CHINESE_NUMBER})$")
_FRAME = re.compile(
    r"^(?P<head>\b(?:i|we) (?!am|was|were|have|had|do|did|can|could|will|would|want|need|think|should|go)\w+"
    r" (?:in|at|on|to|from|with|for|as)|\b(?:my|our) [\w-]+(?: [\w-]+)? is|(?:我|我们|我家)(?:住|姓|学|养)|"
    r"我(?:的|家)[^，。,是叫]{1,8}(?:是|叫))(?:在|了)?\s*(?P<value>[^,.!?;，。！？；]+)",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"^(?:it(?:'s| is| was| should be)|he(?:'s| is)|she(?:'s| is)|they(?:'re| are)|i(?:'m| am)|we(?:'re| are)|"
    r"that(?:'s| is)|"
    r"actually|really|rather|in fact|是|叫|在|应该是|其实是|去|到|姓)\s*",
    re.IGNORECASE,
)
_EACH = "(?:to|in|on|at|for|with|of|from|about)"
"""Words that may lead to each member of a list."""
_WORDS_OF_NAME = 3
_END = 2
"""Characters that two names share at their end."""


@dataclass(frozen=True)
class Substitution:
    """A statement as it is corrected."""

    text: str
    old: str
    """The value that does not hold."""
    new: str


def substitute(statement: str, new: str, old: str = "") -> Substitution | None:
    """The statement with the new value where the old one stands.

    Without an old value it is the one of the new one's kind (a weekday, a number, a name, …). An old value is left
    out where the new one is empty or stands beside it. None where it cannot be told what is replaced.
    """
    if not old and not bare_value(new):
        return None
    if not old and (framed := _same_frame(statement, new)):
        return framed
    if old:
        place = _place_of(statement, old)
        if place and (not new or _place_of(statement, new)):
            return _dropped(statement, place)
        if place:
            bare = _without_what_precedes(bare_value(new), statement[: place[0]])
            value = bare if _is_as_short(bare, old) else _value_like(old, new) or _fitting(bare, statement, place)
            return _replaced(statement, place, value) if value and not _is_misplaced(value, old) else None
        return _typed(statement, bare_value(new), only=old)
    return _each_typed(statement, bare_value(new)) or _typed(statement, bare_value(new))


def values_by_kind(text: str) -> dict[str, tuple[str, ...]]:
    """The values in a text by their kind (a weekday, a number, a name), in lower case."""
    comparable = _comparable(text)
    found = {
        kind: tuple(each.group().casefold() for each in rule.finditer(comparable)) for kind, rule in _RULES.items()
    }
    return {kind: values for kind, values in found.items() if values}


def with_its_unit(value: str, text: str) -> str:
    """A value of a text, with what stands at once after it if it ends in a number: “3” of “3mm” is no 3."""
    if not _ENDS_IN_NUMBER.search(value):
        return value
    written = re.search(rf"{re.escape(value)}(?:[a-z%°]+|[\u4e00-\u9fff])?", text, re.IGNORECASE)
    return written.group() if written else value


def _same_frame(statement: str, new: str) -> Substitution | None:
    given = _FRAME.match(new.strip())
    found = re.search(_FRAME.pattern.removeprefix("^"), statement, re.IGNORECASE) if given else None
    if not given or not found or given["head"].casefold() != found["head"].casefold():
        return None
    return _replaced(statement, found.span("value"), given["value"].strip())


def _dropped(statement: str, place: tuple[int, int]) -> Substitution | None:
    """Leave out the one of “shrimp and walnuts” that does not hold, as the other is there."""
    start, stop = place
    before = re.search(
        rf"\s*(?:,|，|、|\band\b|\bor\b|和|跟|与|以及|还有)+\s*(?:and |or |the |a |{_EACH} )*$", statement[:start]
    )
    after = re.match(r"\s*(?:,|，|、|\band\b|\bor\b|和|跟|与|以及|还有)\s*(?:and |or )*", statement[stop:])
    if before:
        span = (before.start(), stop)
    elif after:
        # “to walnuts and to penicillin”: what leads to each member is left in once.
        leads = re.search(rf"\b({_EACH})\s+$", statement[:start])
        again = re.match(rf"{leads[1]}\s+", statement[stop + after.end() :], re.IGNORECASE) if leads else None
        span = (start, stop + after.end() + (again.end() if again else 0))
    else:
        return None
    return Substitution(f"{statement[: span[0]]}{statement[span[1] :]}", statement[start:stop], "")


def bare_value(new: str) -> str:
    """A value without the words that lead to it: “it's”, 应该是."""
    text = new.strip(' ,，。.!！"“”')
    while (shorter := _LEADING.sub("", text, count=1)) != text and shorter:
        text = shorter
    return text


def _place_of(statement: str, old: str) -> tuple[int, int] | None:
    statement, old = _comparable(statement), _comparable(old)
    words = re.sub(r"^(?:a|an|the|my|in|on|at|to|with|是|在|叫)\s+", "", old.strip(), flags=re.IGNORECASE) or old
    # Chinese has no spaces around a word in Latin letters.
    edges = ("(?<![a-zA-Z0-9_])", "(?![a-zA-Z0-9_])") if words.isascii() else ("", "")
    found = re.search(f"{edges[0]}{re.escape(words)}{edges[1]}", statement, re.IGNORECASE)
    return found.span() if found else None


def _comparable(text: str) -> str:
    folded = simplified(text)
    return folded if len(folded) == len(text) else text


def _fitting(new: str, statement: str, place: tuple[int, int]) -> str:
    """The new text, if it is a value like the old one; empty if it is part of a sentence that goes on differently.

    “green tea with milk” does not go into “I drink coffee with sugar”, nor 厦门看海 into 我去敦煌看壁画.
    """
    start, stop = place
    following = statement[stop:].strip(" ,.!;，。！；")
    if not terms(following) or new.endswith(following):
        return new
    plain = [word for word in new.split() if not word[0].isupper()] if new.isascii() else [new]
    return new if len(terms(" ".join(plain))) <= max(len(terms(statement[start:stop])), 1) else ""


def _is_as_short(new: str, old: str) -> bool:
    if new.isascii():
        return len(new.split()) <= len(old.split())
    return len(new) <= len(old) + 1


def _value_like(old: str, new: str) -> str:
    """The part of the new value that is of the old one's kind."""
    for rule in _RULES.values():
        if rule.search(old if rule is not _RULES["name"] else f"x {old}"):
            found = list(rule.finditer(f"x {new}" if rule is _RULES["name"] else new))
            found = [each for each in found if not _is_misplaced(each.group(), old)]
            if len(found) == 1:
                return found[0].group().strip()
    words = new.split()
    found_after = re.match(
        r"^.*\b(?:is|are|was|were|am|on|at|in|to|called|named)\s+(?P<value>[^,.;!?]+)$", new.strip(), re.I
    )
    return found_after["value"] if found_after and len(words) > len(old.split()) else ""


def _typed(statement: str, new: str, only: str = "") -> Substitution | None:
    original, given = statement, new
    statement, new = _comparable(statement), _comparable(new)
    for kind, rule in _RULES.items():
        # The first word of a sentence begins with a capital letter, too, and need not be a name.
        is_name_alone = kind == "name" and len(new.split()) <= _WORDS_OF_NAME
        news = list(rule.finditer(f"x {new}" if is_name_alone else new))
        if len(news) != 1 or (kind == "name" and _is_of_another_kind(news[0].group())):
            continue
        value = news[0].group()
        places = [each for each in rule.finditer(statement) if each.group().lower() != value.lower()]
        if kind == "name":
            places = [each for each in places if not _is_of_another_kind(each.group())]
        if only:
            places = [each for each in places if only.lower() in each.group().lower()]
        if kind in {"measure", "ordinal"}:
            same = [each for each in places if _UNIT.sub("", each.group()) == _UNIT.sub("", value)]
            places = same or (places if len(places) == 1 and kind == "ordinal" else [])
        if kind == "number":
            places = [each for each in places if _may_be_counted_alike(statement, each, new, news[0])]
        if len(places) > 1:
            alike = [each for each in places if _is_alike(each.group(), value)]
            places = alike if len(alike) == 1 else places
        if len(places) == 1:
            shift = len("x ") if is_name_alone else 0
            written = given[news[0].start() - shift : news[0].end() - shift]
            return _replaced(original, places[0].span(), written)
    return _of_the_same_end(original, given)


def _may_be_counted_alike(statement: str, old: re.Match[str], said: str, new: re.Match[str]) -> bool:
    """Whether two numbers are not written with different units: 3mm and 第七版."""
    units = {_ATTACHED.match(text, number.end()) for text, number in ((statement, old), (said, new))}
    written = {unit.group().casefold() for unit in units if unit}
    return len(written) < len(units) or len(written) == 1


def _is_misplaced(value: str, old: str) -> bool:
    """Whether a value is a month, a number or the like, and the old one is none: a place is no month."""
    return _is_of_another_kind(value) and not any(
        rule.search(old) for kind, rule in _RULES.items() if kind != "name"
    )


def _is_of_another_kind(name: str) -> bool:
    """Whether what is written like a name is a month, a weekday or other values, and nothing else."""
    rest = name
    for kind, rule in _RULES.items():
        rest = rule.sub(" ", rest) if kind != "name" else rest
    return not rest.strip()


def _each_typed(statement: str, new: str) -> Substitution | None:
    """With several values, each in the place of the one of its kind: “Thursday at 4” for “Tuesday at 9”."""
    found: list[tuple[re.Match[str], re.Match[str]]] = []
    for kind in _OF_A_TIME:
        news, olds = list(_RULES[kind].finditer(new)), list(_RULES[kind].finditer(statement))
        is_read = any(_overlap(each, said) for each in news for said, _ in found)
        if (
            len(news) == 1
            and len(olds) == 1
            and not is_read
            and not any(_overlap(olds[0], old) for _, old in found)
        ):
            found.append((news[0], olds[0]))
    changed = [(said, old) for said, old in found if said.group().casefold() != old.group().casefold()]
    if len(changed) < 2:  # noqa: PLR2004
        return None
    text = statement
    for said, old in sorted(changed, key=lambda each: -each[1].start()):
        text = f"{text[: old.start()]}{said.group().strip()}{text[old.end() :]}"
    said, old = changed[0]
    return Substitution(text, old.group().strip(), said.group().strip())


def _overlap(one: re.Match[str], other: re.Match[str]) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _is_alike(one: str, other: str) -> bool:
    """Whether two values are written in the same form: both in digits, or with a word in common."""
    digits = [any(character.isdigit() for character in each) for each in (one, other)]
    if digits[0] != digits[1]:
        return False
    return digits[0] or not set(one.lower().split()).isdisjoint(other.lower().split())


def _of_the_same_end(statement: str, new: str) -> Substitution | None:
    """A Chinese name that ends as the new one does and is as long: 锦栖酒店 and 云栈酒店."""
    name = re.search(r"[\u4e00-\u9fff]{3,6}$", new.strip("。！!，, "))
    if name is None:
        return None
    places = [
        found.start() + _END - len(name.group())
        for found in re.finditer(re.escape(name.group()[-_END:]), statement)
        if found.start() + _END >= len(name.group())
    ]
    if len(places) != 1 or statement[places[0] :].startswith(name.group()):
        return None
    return _replaced(statement, (places[0], places[0] + len(name.group())), name.group())


def _replaced(statement: str, span: tuple[int, int], value: str) -> Substitution:
    old, following = statement[span[0] : span[1]], statement[span[1] :].strip(" ,.!;，。！；")
    if (part := _PART_OF_DAY.match(old)) and _RULES["time"].fullmatch(value) and not _PART_OF_DAY.match(value):
        value = f"{part.group()}{value}"  # 三点 for 下午两点
    if following and value.endswith(following):
        value = value.removesuffix(following)  # “在阿斯麦上班” for 飞利浦 in “在飞利浦上班”
    return Substitution(f"{statement[: span[0]]}{value.strip()}{statement[span[1] :]}", old.strip(), value.strip())


def _without_what_precedes(value: str, before: str) -> str:
    """A value without the first words that stand before it already: “York to Hull” behind “from York to”."""
    for end in range(len(value) - 1, 1, -1):
        if before.rstrip().endswith(value[:end].strip()) and _ends_a_word(value, end):
            return value[end:].lstrip()
    return value


def _ends_a_word(text: str, end: int) -> bool:
    return not text[end - 1 : end + 1].isascii() or not text[end - 1 : end + 1].isalnum()
