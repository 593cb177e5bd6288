"""When one remembered sentence takes the place of another: rules, in Chinese and English.

Two sentences are about the same when the words of liking, negation, degree and time are stripped from both
and the same is left (likes horror films / no longer likes horror films), or when both give a value to something
that has only one (lives in Berlin / lives in Lisbon). Of two that are about the same, the newer holds.
"""

import re
import unicodedata
from dataclasses import dataclass

_SPEAKERS = ("the user", "user", "i", "he", "she", "they", "用户", "我", "他", "她")
"""At a sentence's beginning, these say nothing about what it is about."""

_NEGATIONS = (
    *("no longer", "not", "never", "does not", "doesn't", "do not", "don't", "did not", "didn't", "no"),
    *("is not", "isn't", "am not", "are not", "aren't", "cannot", "can't", "has stopped", "stopped", "avoids"),
    *("has given up", "gave up", "quit", "不再", "不太", "不怎么", "不是很", "不是", "不想", "不", "没有", "没"),
    *("别", "戒了", "戒掉了", "戒"),
)
_LIKINGS = (
    *("likes", "like", "liked", "liking", "loves", "love", "loved", "loving", "enjoys", "enjoy", "enjoyed"),
    *("prefers", "prefer", "adores", "adore", "is", "am", "are", "fond of", "keen on", "interested in", "into"),
    *("a fan of", "fan of", "dislikes", "dislike", "disliked", "hates", "hate", "hated", "detests", "detest"),
    *("stand", "喜欢", "喜爱", "热爱", "酷爱", "偏爱", "爱", "想", "讨厌", "厌恶", "反感", "受不了", "对"),
)
_DEGREES = (
    *("really", "very much", "very", "quite", "rather", "somewhat", "a bit", "absolutely", "totally", "often"),
    *("sometimes", "always", "usually", "still", "now", "currently", "also", "recently", "already"),
    *("很", "非常", "特别", "最", "超级", "超", "十分", "太", "挺", "比较", "有点", "有些", "还是", "还", "更"),
    *("真的", "现在", "目前", "已经", "一直", "经常", "偶尔", "从", "也", "都", "最近", "以前", "再"),
    *("上个月", "这个月", "上周", "昨天", "去年", "前年", "今年", "刚刚", "刚"),
)
_DOINGS = (
    *("watching", "to watch", "watch", "eating", "to eat", "eat", "drinking", "to drink", "drink", "reading"),
    *("to read", "read", "listening to", "to listen to", "listen to", "playing", "to play", "play"),
    *("看", "吃", "喝", "听", "玩", "读"),
)
"""Activities with what somebody likes (likes watching horror films, no longer likes horror films)."""
_DOING = tuple(
    doing if not doing.isascii() else f"{liking} {doing}"  # eats meat is no liking, 吃肉 may be
    for doing in _DOINGS
    for liking in _LIKINGS
    if liking.isascii()
)
_AT_THE_END = (
    *("any more", "anymore", "any longer", "no more", "no longer", "very much", "a lot", "at all", "now"),
    *("感兴趣", "不感兴趣", "没兴趣", "有兴趣", "没有兴趣", "不再感兴趣", "了", "啦", "过敏了"),
)

_ONLY_ONE: tuple[tuple[str, str], ...] = (
    ("lives", r"(?:lives?|living|resides?) in (?P<value>.+)"),
    ("lives", r"(?:has |have )?(?:just |recently )?(?:moved|relocated) to (?P<value>.+)"),
    ("lives", r"(?:居?住在|定居在?|搬到了?|搬去了?|搬家到了?)(?P<value>.+)"),
    ("works at", r"(?:works?|working|is employed) (?:at|for) (?P<value>.+)"),
    ("works in", r"(?:works?|working) in (?P<value>.+)"),
    ("works as", r"(?:works?|working) as (?P<value>.+)"),
    ("works at", r"在(?P<value>.+?)(?:上班|工作|就职|任职)"),
    ("is called", r"(?:is |am |are )?(?:called|named) (?P<value>.+)"),
    ("is called", r"(?:name|name's) (?:is )?(?P<value>.+)"),
    ("is called", r"(?:的?名字是|的?名字叫|名叫|叫做|叫(?![我你妳您他她它咱人大]))(?P<value>.+)"),  # not 叫她坐着
    ("is so old", r"(?:is |am |are )?(?P<value>\d+) years old"),
    ("is so old", r"(?:今年)?(?P<value>[\d零一二两三四五六七八九十百]+)岁"),
    ("was born", r"(?:was born (?:on|in)|birthday is(?: on)?) (?P<value>.+)"),
    ("was born", r"(?:的?生日是|出生于)(?P<value>.+)"),
)
"""Attributes with one value at a time, preceded by whose they are (her parents live in Berlin)."""

_WHOSE = r"\A(?P<whose>(?:[^\W\d_]+(?:'s)? ){0,3}?|[\u4e00-\u9fff]{0,4}?)"
_RELATIONS = tuple((name, re.compile(f"{_WHOSE}{pattern}")) for name, pattern in _ONLY_ONE)

_OF_ANYTHING = frozenset(["is called", "is so old", "was born"])
_OF_THE_USER = re.compile(r"(?:(?:the )?user|i(?:'m)?|my)(?!\w)|[我咱俺]|用户")

_FROM = re.compile(
    r"(?<=moved) from .{1,40}? (?=to )|(?<=relocated) from .{1,40}? (?=to )|从[\u4e00-\u9fff]{1,12}?(?=搬|迁)"
)
"""Where somebody has moved from says nothing of where they live."""

_SPACES = re.compile(r"\s+")
_SPACE_BESIDE_CHINESE = re.compile(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|es|s|e)\b")
_LONGEST = 200
"""Characters of a sentence that the rules look at."""
_MARKS = " .,;:!?。，；：！？、"


def _pattern(words: tuple[str, ...], shape: str) -> re.Pattern[str]:
    # An English word ends where it ends; in Chinese there is no telling.
    ordered = sorted(words, key=len, reverse=True)
    english = "|".join(re.escape(word) for word in ordered if word.isascii())
    chinese = "|".join(word for word in ordered if not word.isascii())
    return re.compile(shape.format(english=english, chinese=chinese))


_LEADING = _pattern(
    _SPEAKERS + _NEGATIONS + _LIKINGS + _DEGREES + tuple(dict.fromkeys(_DOING)),
    r"(?:(?:{english})(?!\w)|(?:{chinese}))\s*",
)
_TRAILING = _pattern(_AT_THE_END, r"\s{{0,8}}(?:\b(?:{english})|(?:{chinese}))$")
_NEGATION_AT_END = _pattern(_NEGATIONS, r"(?:\b(?:{english})|(?:{chinese}))\s*$")
_TIME = _pattern(_SPEAKERS + _DEGREES, r"(?:(?:{english})(?!\w)|(?:{chinese}))\s*")


def normalised(text: str) -> str:
    """A text without what does not matter: width, case, spaces, and the marks around it."""
    folded = _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    return _SPACE_BESIDE_CHINESE.sub("", folded).strip(_MARKS)


@dataclass(frozen=True)
class Claim:
    """What a sentence is about."""

    text: str
    """Normalised."""
    subject: str
    relation: tuple[str, str] | None
    """What has one value at a time, and whose it is."""

    @property
    def owned(self) -> bool:
        """Whether it says whose name, age or birthday it gives; 叫小白 does not, said among other things."""
        if self.relation is None:
            return True
        name, whose = self.relation
        return bool(whose) or name not in _OF_ANYTHING or bool(_OF_THE_USER.match(self.text))

    @property
    def tells(self) -> bool:
        """Whether it says by itself what holds of its subject (likes tea), and is no bare value (tea)."""
        return self.relation is not None or not self.text.startswith(self.subject[:4])

    def contradicts(self, other: "Claim") -> bool:
        """Whether the two, not the same, are about the same, so that only the newer can hold.

        A denial (no longer lives in Berlin) is about what it denies, and about no other value.
        """
        if self.text == other.text:
            return False
        return self.subject == other.subject or (self.relation is not None and self.relation == other.relation)


def ends_in_negation(text: str) -> bool:
    """Whether what follows a text is denied by its last words: “no longer”, 不再."""
    return _NEGATION_AT_END.search(text) is not None


def claim_of(sentence: str) -> Claim:
    """What a sentence is about; a long text is about nothing but itself."""
    text = normalised(sentence)
    if len(text) > _LONGEST:
        return Claim(text, text, None)
    return Claim(text, subject_of(text), _relation_of(text))


def subject_of(sentence: str) -> str:
    """What is left of a normalised sentence without liking, negation, degree and time."""
    left = sentence
    while left:
        shorter = _TRAILING.sub("", _strip(_LEADING, left)).strip(_MARKS)
        if shorter == left or not shorter:
            break
        left = shorter
    return _ENDING.sub("", left)


def _relation_of(sentence: str) -> tuple[str, str] | None:
    sentence = _strip(_TIME, _FROM.sub(_gap, sentence))
    for name, pattern in _RELATIONS:
        found = pattern.match(sentence)
        if found and not _denies(found["whose"]):
            whose = _strip(_TIME, found["whose"].strip())
            return name, "" if whose in {"my", "her", "his", "their", *_SPEAKERS} else whose
    return None


def _gap(found: re.Match[str]) -> str:
    return " " if found.group().startswith(" ") else ""


def _denies(whose: str) -> bool:
    whose = whose.strip()
    return any(
        re.search(rf"(?:^|\s){re.escape(word)}$", whose) if word.isascii() else word in whose
        for word in _NEGATIONS
    )


def _strip(pattern: re.Pattern[str], text: str) -> str:
    """Without what the pattern finds at the beginning, again and again; but never without anything."""
    while (found := pattern.match(text)) and found.end() < len(text):
        text = text[found.end() :]
    return text
