"""The intent of a message, by its form: could a document hold the answer? Pure.

An institution's documents answer how one gets, does or may do something, where, when and for how much; and what
to do when something has gone wrong. What the world is like, what was said before, and a text that is to be written
are asked in other forms, whatever words they share with a document.
"""

import re
from collections.abc import Sequence
from enum import Enum

from services.knowledge.overlap import wanted
from services.text.language import Language, language_of
from services.text.tokenizer import informative_terms, simplified
from state.prompt import HistoryMessage

_MOST_WORDS = {"en": 5, "zh": 8}
"""Words of a bare phrase ("refund policy"); in Chinese, characters."""


class MessageIntent(Enum):
    """Intent of a message; the value is `needed`."""

    SERVICE = 0.24
    """How, where, when, for how much, whether one may."""
    TROUBLE = 0.45
    """Reports a fault, or how something behaves."""
    QUESTION = 0.9
    """Any other question."""
    TOLD = 1.2
    """Tells something else about the user."""
    ELSEWHERE = 9.0
    """Asks for a piece of work, or for what was said: no document has that."""

    @property
    def needed(self) -> float:
        """Points from which a base is searched (`deciding`)."""
        return self.value


_MADE = {
    "en": re.compile(
        r"^(?:please |can you |could you |would you |will you |help me |i want you to |let's |and |now )*"
        r"(?:write|compose|draft|translate|summari[sz]e|rewrite|rephrase|proofread|make (?:this|it|me|up)"
        r"|invent|imagine"
        r"|pretend|play|act as|tell me an? |tell a |plan|recommend|suggest|compare|add|generate|create"
        r"|give me an? "
        r"|brainstorm|come up with|sing|draw|name (?:a|an|three|five|some|\d))"
    ),
    "zh": re.compile(
        "^(?:请|麻烦|你|能不能|可以|能|帮忙|帮我|给我|替我|为我|来)*(?:写(?!入|保护)|编|起草|翻译|润色|改写"
        "|总结|概括|列[一个出]|画|作一"
        "|扮演|讲个|讲一个|讲讲|说个|推荐|想一?个|取一?个|起一?个|算一?下|介绍|把.*(?:翻译|改)|给这|生成|设计)"
        "|接龙|扮演|剧本|文案"
    ),
}
_SAID = {
    "en": re.compile(
        r"\b(?:do|did|can) (?:you|u) (?:still )?(?:remember|recall)\b|\bremind me\b|\bremember (?:that|my|to)\b"
        r"|\b(?:i|we)(?:'ve| have)? (?:just )?(?:told|tell|mentioned to|said to) you\b|\bdid (?:i|we) (?:tell"
        r"|say|mention|talk)"
        r"|\byou (?:just )?(?:mentioned|said|told|recommended|suggested)\b|\bforget (?:what|that|about)\b"
        r"|\babout me\b|\b(?:we|you and i) (?:talk|discuss|decid|agree)\w*\b|\bwho(?:'s| is| was) my\b"
        r"|\bwhat(?:'s| is| was) (?:my \w+'s|my (?:name|job|birthday|favou?rite|age|wife|husband|dog|cat))\b"
    ),
    "zh": re.compile(
        "还?记得|记不记得|记住|记一下|别忘|忘掉|忘记我|我[^,，。]{0,40}(?:来着|叫什么|是谁)|我(?:最?喜欢|爱吃"
        "|在哪里?(?:上班|住)|是(?:做|干))"
        "|(?:你|我们?|咱们)(?:刚才|刚刚|昨天|上次|上周|之前|以前)[^,，。]{0,40}(?:说|聊|提|讲|推荐)|(?:刚才|昨天"
        "|上次|上周|之前)(?:你|我们|我跟你)"
    ),
}
_SERVICE = {
    "en": re.compile(
        r"\bhow (?:do|can|should|would|must|may) (?:i|we|you|one)\b|\bhow (?:to|much|many|long|often|late"
        r"|early|soon|far|old|big)\b"
        r"|\bhow does (?:it|this|that) work\b|\bwhere(?:'s| is| are| do| can| should| may| to| must)\b"
        r"|\bwhere will\b"
        r"|\bwhen (?:do|does|is|are|can|will|must|should|may)\b|\b(?:what|which) time\b|\bhow about\b"
        r"|\bwho(?:m)? (?:do|can|should|must|will|collects?|pays?|repairs?|approves?|is responsible|takes)\b"
        r"|\b(?:can|may|could|must|should|am|are|do|does|did|will|is|need) (?:i|we|you|my|our|the|it|there"
        r"|this|that|they)\b"
        r"|\bam i\b|\bwhat (?:happens|should i|do i|does .* (?:cost|include|cover)|if|documents?|are the"
        r"|is the)\b"
        r"|\bwhat now\b|\b(?:i|we) (?:need|want|would like|'d like) (?:to|an?|some)\b|\bwhether\b"
        r"|\b(?:price|cost|fee|policy|procedure|opening hours|rules?) (?:of|for)\b"
    ),
    "zh": re.compile(
        "怎么|怎样|如何|咋|什么时[间候]|多少|多久|多大|几(?!乎|率)|哪|吗|么$|能不能|可不可以|可否|要不要|用不用|是不是"
        "|有没有|有.{0,6}不$|什么时候"
        "|何时|需要|流程|规定|规则|收费|条件|材料|手续|标准|不$|我要|我想|想问|咨询|办理|申请|查一下|要注意"
        "|[能可要].{0,12}[吗么嘛不]"
    ),
}
_OF_THE_WORLD = {
    "en": re.compile(
        r"^(?:so |and |but |hey |hi )*(?:why|who(?= (?:is|was|are|were|wrote|made|invented|won|painted))"
        r"|explain|tell me about|do you think|what(?:'s| is| are| was| were) (?!the |included)"
        r"|what does \S+ (?:mean|stand)|how (?:does|do|did) (?!i |we |you |one |it |this |that )"
        r"|which \w+ is\b|should i\b)"
        r"|\bstand for\b|\bmean\?"
    ),
    "zh": re.compile(
        "为什么|为何|是什么(?!时候)|什么是|原理|区别|意思|谁(?!批|负责|付|出)|解释|你觉得|你认为|该不该|含义|历史"
    ),
}
_TROUBLE = {
    "en": re.compile(
        r"n't\b|\b(?:not|no longer|never|cannot|broken?|breaks|lost|lose|stole|stolen|locked|stuck|jammed|leak\w*"
        r"|crack\w*|damaged"
        r"|wrong|missing|late|forgot(?:ten)?|smells?|error|fails?|failed|slow|snapped|torn|expired|help"
        r"|dripping|cold|dead"
        r"|down|refused|rejected|clicked|chewed|problem|trouble)\b"
    ),
    "zh": re.compile(
        "[丢坏破碎断漏堵错裂]|失败|不了|没(?:有)?(?:收|到|动|反应|更新|法)|打不开|用不了|连不上|过期|锁[住定]"
        "|卡[住死]|报错|故障"
        "|还没|退回来|被[偷盗锁]"
    ),
}
_OF_ONESELF = {
    "en": re.compile(r"\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our)\b"),
    "zh": re.compile("我|咱"),
}


_CLAUSE_ENDS = re.compile(r"[,，。.!！?？;；:：\n]+(?=\D|$)|\band now\b|\bbut\b|\s[-–—]\s")
_SEVERAL_TERMS = 2

_MOST_CHARACTERS = {"en": 80, "zh": 24}
"""Longest message, in characters, that can continue the one before."""
_GOES_ON = {
    "en": re.compile(r"(?:and|but|or|so|then|also|what about|how about|what if)\b", re.IGNORECASE),
    "zh": re.compile(r"那|还有|另外|如果|要是|它|这个|这些"),
}
_POINTS_BACK = {
    "en": re.compile(r"\b(?:it|its|they|them|their|that|those|this|these|there|one)\b", re.IGNORECASE),
    "zh": re.compile(r"它|这个|那个|这些|那些|呢[？?]?$"),
}


def manner_of(message: str) -> MessageIntent:
    """The intent of a message; only the clause that asks counts, not feelings and courtesies around it."""
    text = simplified(message).lower().replace("’", "'").strip()
    language = language_of([text])
    if _MADE[language].search(text) or _SAID[language].search(text):
        return MessageIntent.ELSEWHERE
    if _OF_THE_WORLD[language].search(text):
        return MessageIntent.QUESTION
    if _SERVICE[language].search(text.rstrip("?？。.!！~ ")) or _is_bare_phrase(text, language):
        return MessageIntent.SERVICE
    if "?" in text or "？" in text:
        return MessageIntent.QUESTION if _OF_ONESELF[language].search(text) else MessageIntent.SERVICE
    of_oneself = _OF_ONESELF[language].search(text) is not None
    return MessageIntent.TOLD if of_oneself and not _TROUBLE[language].search(text) else MessageIntent.TROUBLE


def is_of_oneself(message: str) -> bool:
    """Whether a message speaks of its writer."""
    text = simplified(message).lower().replace("’", "'")
    return _OF_ONESELF[language_of([text])].search(text) is not None


def _is_bare_phrase(text: str, language: Language) -> bool:
    length = len(text) if language == "zh" else len(text.split())
    return length <= _MOST_WORDS[language] and not _OF_ONESELF[language].search(text)


def views_of(message: str, manner: MessageIntent) -> list[str]:
    """The message, and each of its clauses that asks or reports a fault."""
    if manner is not MessageIntent.SERVICE:
        return [message]
    clauses = [clause.strip() for clause in _CLAUSE_ENDS.split(message)]
    asking = [
        clause
        for clause in clauses
        if len(wanted(clause).terms) >= _SEVERAL_TERMS
        and manner_of(clause) in {MessageIntent.SERVICE, MessageIntent.TROUBLE}
    ]
    return list(dict.fromkeys([message, *asking]))


def followed(message: str, history: Sequence[HistoryMessage]) -> str | None:
    """The user's previous message if this one continues it and names little itself, else None."""
    text = message.strip()
    language = language_of([text])
    if len(text) > _MOST_CHARACTERS[language]:
        return None
    goes_on = _GOES_ON[language].match(text) or _POINTS_BACK[language].search(text)
    if not goes_on or len(informative_terms(text)) > _SEVERAL_TERMS:
        return None
    before = (shown["content"] for shown in reversed(history) if shown["role"] == "user")
    return next(before, None)
