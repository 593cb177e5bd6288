"""What rules alone make of a message: the obvious cases of what a user says of themselves, in two languages."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from services.llm.language import language_of
from services.memory.clauses import statements

Field = Literal["name", "home", "work", "allergies", "preferences", "decision"]


@dataclass(frozen=True)
class Finding:
    """Something that a user said of themselves."""

    field: Field
    """Where core memory keeps it; a decision is an episode instead."""
    text: str
    """As it is remembered; of `allergies` what they are to."""


Made = Callable[[re.Match[str]], Iterable[Finding]]

_LONGEST_VALUE = 80
_MARKS = ' .,;:!?。，；：！？、~～"“”'

# --- English

_VERB_ADVERBS = (
    r"(?P<adverbs>(?: (?:really|also|still|just|do|always|quite|now|so|absolutely|actually|truly|simply|even|"
    r"particularly|especially|currently|usually|no longer|don't|do not|never|didn't|not)(?![\w']))*+)"
)
_ENDS = (
    r"(?= (?:last|this|next|since|because|so|and (?:i|my|we)|but|now|these days|right now|any ?more|"
    r"at the moment|"
    r"currently|recently|already|yesterday|today|with my|for (?:work|now|\w+ years|a)|for the|ago|when|where|"
    r"which|"
    r"who|if|though|although|while|in (?:january|february|march|april|may|june|july|august|september|october|"
    r"november|december|\d{4})|on (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|"
    r"(?:two|three|four|five|six|\d+|a few|a couple of|some) (?:days?|weeks?|months?|years?)|a lot|very much|"
    r"so much|"
    r"too|as well|at all|either|either way|by the way|btw|actually|then|again|permanently|instead)\b|[,;:(]|$)"
)
_PLACE = (
    r"(?!(?:the|a|an|my|our|this|that|here|there|it|fear|peace|hope|same|his|her|"
    r"their)\b)(?P<value>\S.*?)" + _ENDS
)
_PROPER = r"(?P<value>(?-i:[A-Z])\S*.*?)" + _ENDS
_THING = (
    r"(?!(?:it|that|this|these|those|you|your|yours|them|him|her|how|what|where|when|to know|to ask|to see|"
    r"to say|to "
    r"think|to thank|the (?:idea|way|sound|fact|answer|first|second|third|last|one)|everything|nothing|"
    r"anything|"
    r"something|so|me)\b)(?P<value>\S.*?)" + _ENDS
)
_LIKING = {
    "like": "likes", "love": "loves", "enjoy": "enjoys", "adore": "loves", "prefer": "prefers", "hate": "hates",
    "detest": "hates", "dislike": "dislikes",
}  # fmt: skip


def _english(found: str) -> str:
    """A value in the third person, without the marks around it."""
    text = re.sub(r"\bmy\b", "their", found.strip(_MARKS), flags=re.IGNORECASE)
    text = re.sub(r"\b(?:me|myself)\b", "them", text, flags=re.IGNORECASE)
    return re.sub(r"\bi\b", "they", text, flags=re.IGNORECASE)


def _one(field: Field, template: str) -> Made:
    return lambda found: [Finding(field, template.format(_english(found["value"])))]


def _liked(found: re.Match[str]) -> Iterable[Finding]:
    adverbs, verb = found["adverbs"].casefold(), found["verb"].casefold()
    value = _english(found["value"])
    if re.search(r"no longer|any ?more$", f"{adverbs} {found.string[found.end('value') :]}".casefold().strip()):
        text = f"no longer {_LIKING[verb]} {value}"
    elif re.search(r"don't|do not|never|didn't|\bnot", adverbs):
        text = f"does not {verb} {value}"
    else:
        text = f"{_LIKING[verb]} {value}"
    return [Finding("preferences", text)]


def _allergies(found: re.Match[str]) -> Iterable[Finding]:
    parts = re.split(r",| and | or |、|和|跟|以及|还有|与", found["value"])
    return [Finding("allergies", part.strip(_MARKS)) for part in parts if part.strip(_MARKS)]


def _lives(found: re.Match[str]) -> Iterable[Finding]:
    no_longer = re.search(r"no longer|don't|do not|not", found["adverbs"].casefold())
    return [Finding("home", f"{'no longer ' if no_longer else ''}lives in {_english(found['value'])}")]


def _works(found: re.Match[str]) -> Iterable[Finding]:
    no_longer = re.search(r"no longer|don't|do not|not", found["adverbs"].casefold())
    what = f"{found['how'].casefold()} {_english(found['value'])}"
    return [Finding("work", f"{'no longer ' if no_longer else ''}works {what}")]


def _decided(found: re.Match[str]) -> Iterable[Finding]:
    return [Finding("decision", f"The user has decided {found['what'].casefold()} {_english(found['value'])}.")]


_ENGLISH: tuple[tuple[str, Made], ...] = (
    (r"my (?:first |full )?name(?:'s| is) (?!not\b)(?P<value>[^\W\d_][\w'.-]*(?: (?-i:[A-Z])[\w'.-]*){0,3})",
     _one("name", "{}")),
    (r"(?:please |just |you can |"
     r"everyone )*call(?:s)? me (?P<value>(?-i:[A-Z])[\w'.-]*(?: (?-i:[A-Z])[\w'.-]*)?)$",
     _one("name", "{}")),
    (r"i(?:'m| am) (?:called|named) (?P<value>(?-i:[A-Z])[\w'.-]*(?: (?-i:[A-Z])[\w'.-]*){0,3})",
     _one("name", "{}")),
    (rf"i(?:'m| am|'ve been| have been)?{_VERB_ADVERBS} (?:live|living|reside|based) in {_PLACE}", _lives),
    (rf"(?:i|we)(?:'ve| have)?{_VERB_ADVERBS} (?:recently )?(?:moved|"
     rf"relocated)(?: back)?(?: from .+?)? to {_PROPER}",
     _lives),
    (rf"i(?:'m)?{_VERB_ADVERBS} work(?:ing)? (?P<how>at|for|as|in) (?!home\b|it\b|this\b|that\b|the (?:same|"
     rf"next)\b|"
     rf"progress\b|general\b|my\b)(?P<value>\S.*?){_ENDS}", _works),
    (rf"i(?:'ve| have)? (?:just |recently |now )?(?:started (?:working )?|begun working )at {_PROPER}",
     _one("work", "works at {}")),
    (rf"i(?:'m| am)(?: \w+ly| very| quite| also)? allergic to (?!you|this|"
     rf"that)(?P<value>\S.*?){_ENDS}", _allergies),
    (r"i have an? (?:\w+ly )?(?:severe |bad |mild )?(?P<value>[\w-]+) allergy", _allergies),
    (rf"i{_VERB_ADVERBS} (?P<verb>{'|'.join(_LIKING)}) {_THING}", _liked),
    (rf"i used to (?:like|love|enjoy|adore) {_THING}", _one("preferences", "no longer likes {}")),
    (rf"i (?:can't|cannot|can not) stand {_THING}", _one("preferences", "cannot stand {}")),
    (rf"i(?:'m| am)(?: \w+ly| a big| a huge)* (?:a )?(?:big |huge )?(?:fan of|fond of|into|keen on) {_THING}",
     _one("preferences", "is fond of {}")),
    (rf"i(?:'m| am) not (?:really )?(?:a )?(?:big |huge )?(?:fan of|fond of|into|keen on) {_THING}",
     _one("preferences", "is not fond of {}")),
    (r"(?:i|we)(?:'ve| have)? (?:\w+ly |now |just )?decided (?P<what>(?:not )?to|that|on|against) (?P<value>\S.*)",
     _decided),
)  # fmt: skip

# --- Chinese

_WO = r"我(?!们|的|家|妈|爸|爷|奶|女|儿|老|朋|同|哥|姐|弟|妹|男)"
_NOW = (
    r"(?P<adverbs>(?:现在|目前|最近|一直|已经|其实|也|都|还是|还|更|最|很|非常|特别|超级|超|挺|比较|有点|真的|"
    r"真|就|才|"
    r"刚刚|刚|从小|今年|去年|前年|上个月|上周|昨天|这个月|个人|确实|不再|不太|不怎么|不是很|不|没|再也)*+)"
)
_ENDS_ZH = r"(?:了|啦|呢|的|哦|啊|呀|吧|一点)*$"
_TOWN = r"(?P<value>(?!这|那|哪|家|楼|宿舍|学校|一起|新家|新房|新的|新公司|隔壁|同一|一个|一家)[^了,，\s]{1,15}?)"


def _no(found: re.Match[str]) -> str:
    """How the sentence denies, if it does."""
    adverbs = found["adverbs"] or ""
    if re.search(r"不再|再也不", adverbs) or (re.search(r"不|没", adverbs) and found.string.endswith("了")):
        return "不再"
    return next((word for word in ("不太", "不怎么", "不是很", "不") if word in adverbs), "")


def _in_chinese(field: Field, template: str) -> Made:
    def made(found: re.Match[str]) -> Iterable[Finding]:
        return [Finding(field, _no(found) + template.format(found["value"].strip(_MARKS)))]

    return made


def _liked_in_chinese(found: re.Match[str]) -> Iterable[Finding]:
    no = _no(found)
    degree = next((word for word in ("最", "更") if not no and word in (found["adverbs"] or "")), "")
    # 不再喜欢 and 不喜欢…了 are the same; the shorter is how it is said.
    no = "不" if no == "不再" else no
    return [Finding("preferences", f"{no}{degree}{found['verb']}{found['value'].strip(_MARKS)}")]


def _plain(field: Field, template: str) -> Made:
    return lambda found: [Finding(field, template.format(found["value"].strip(_MARKS)))]


_NAME = r"(?P<value>[\u4e00-\u9fff·]{1,6}?|[A-Za-z][A-Za-z .'-]{0,30}?)(?:就行|就好|就可以|即可|好了|吧|哦|啦)?$"
_LIKE = (
    r"(?P<verb>喜欢|喜爱|热爱|酷爱|偏爱|讨厌|厌恶|受不了|爱吃|爱喝|爱看|爱听|爱玩)"
    r"(?P<value>(?!你|它|他|她|这|那|什么|的是|上了?$|我)[^了]{1,30}?)"
)

_CHINESE: tuple[tuple[str, Made], ...] = (
    (rf"我的?(?:名字叫|名字是|名叫|全名是|姓名是|叫)(?!你|他|她|它|什么|外卖|车|醒|了|不|做|个|"
     rf"来){_NAME}", _plain("name", "{}")),
    (rf"(?:请|你可以|以后|大家都|可以|就|你|平时)*(?:叫|称呼)我(?!的|们){_NAME}", _plain("name", "{}")),
    (rf"{_WO}{_NOW}(?:居住在|定居在|定居|住在|家住|住){_TOWN}{_ENDS_ZH}", _in_chinese("home", "住在{}")),
    (rf"{_WO}(?P<adverbs>)(?:.{{0,12}}?)(?:搬家到|搬到|搬去|搬来|搬回|移居到?|迁居到?)了?{_TOWN}{_ENDS_ZH}",
     _in_chinese("home", "住在{}")),
    (rf"{_WO}{_NOW}在(?P<value>(?!家|考虑|想|这|那|哪|找)[^,，\s]{{1,20}}?)(?:工作|上班|任职|就职){_ENDS_ZH}",
     _in_chinese("work", "在{}工作")),
    (rf"{_WO}{_NOW}是(?:一名|一位|名|一个|个)(?P<value>[^,，\s]{{0,10}}(?:师|员|医生|护士|教授|律师|作家|司机|"
     rf"厨师|警察|老板|"
     r"记者|演员|公务员|学生|研究生|博士生))$", _plain("work", "是一名{}")),
    (rf"{_WO}(?P<adverbs>)对(?P<value>(?!你|这|那)[^,，\s]{{1,20}}?)(?:都|有点|严重|特别|很|有|"
     rf"会)*过敏{_ENDS_ZH}", _allergies),
    (rf"{_WO}{_NOW}{_LIKE}{_ENDS_ZH}", _liked_in_chinese),
    (r"(?:我们?|咱们)(?:已经|最后|终于|最终|现在|刚刚?|还是|商量后|一致|想好了)*决定(?:了|要)?(?!不了|"
     r"权)(?P<value>\S.*?)(?:了|啦|吧)*$",
     _plain("decision", "用户决定{}。")),
)  # fmt: skip
_SOMEBODY = re.compile(r"^(?:你|您|他|她|它|我|咱|大家|朋友|同学|这|那)")
_MORE_ALLERGENS = re.compile(
    r"(?:and |or )?(?P<value>(?!(?:i|so|my|we|but|please|"
    r"which)\b)[\w-]+(?: [\w-]+){0,3})",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"以前|曾经|过去|小时候|used to (?:live|work)")


def _compiled(rules: tuple[tuple[str, Made], ...]) -> tuple[tuple[re.Pattern[str], Made], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), made) for pattern, made in rules)


_RULES = {"en": _compiled(_ENGLISH), "zh": _compiled(_CHINESE)}


def findings(message: str) -> list[Finding]:
    """What a message says of its user, in order, each once; of what has one value, the last that was said."""
    found: dict[tuple[str, str], Finding] = {}
    before: list[Finding] = []
    for clause in statements(message):
        before = [] if _BEFORE.search(clause.folded) else list(_findings(clause.text, before))
        for each in before:
            if each.text and len(each.text) <= _LONGEST_VALUE + 40:
                many = each.field in ("allergies", "preferences", "decision")
                found[each.field, each.text.casefold() if many else ""] = each
    return list(found.values())


def _findings(clause: str, before: Sequence[Finding]) -> Iterable[Finding]:
    """What a clause says, with what the one before it said."""
    if language_of([clause]) == "en":
        more = _MORE_ALLERGENS.fullmatch(clause) if before and before[-1].field == "allergies" else None
        return _allergies(more) if more else _matching(_RULES["en"], clause)
    # In Chinese, who is spoken of is named once.
    subject = "我" if before and not _SOMEBODY.match(clause) else ""
    return _matching(_RULES["zh"], subject + clause)


def _matching(rules: Iterable[tuple[re.Pattern[str], Made]], clause: str) -> Iterable[Finding]:
    for pattern, make in rules:
        matched = pattern.match(clause)
        if matched and len(matched["value"]) <= _LONGEST_VALUE:
            return make(matched)
    return ()
