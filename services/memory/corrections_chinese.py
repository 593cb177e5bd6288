"""Which Chinese sentences correct what was told before. The text is simplified."""

import re

from services.memory.command import Clause
from services.memory.commands_chinese import ASKS, CORRECTS
from state.memory import Command

_WRONG = re.compile(
    r"(?:我|刚才|刚刚|刚|前面|上面|之前|上次|昨天)*(?:跟你|给你|和你|告诉你)?(?:的)?(?:那个|那句|"
    r"这个)?(?:是我)?(?:说|记|写|打|搞|弄|讲|告诉|报|"
    r"算)(?:的)?(?:错|反|岔)(?:了|啦|一点|的)"
    r"|口误|更正(?:一下)?|纠正(?:一下)?|(?:刚才|之前|前面|上面|上次|以上|你(?:记|说|存|写|记录|知道|了解))\S{0,10}?(?:不对|有误|错了|"
    r"不准确|不正确|过时了)|你(?:记|搞|弄|听|理解)错(?:了|我\S{1,8}?了)|(?:打|写)错字"
)
_NOT_BUT = re.compile(
    r"(?:不是|并非|而非)(?P<old>[^,，。;；!！?？]{1,24}?)[,，、]?\s*(?:我|他|她|它|咱们?|我们|那|这)?(?:而是|应该是|应当是|其实是|"
    r"是)(?P<new>[^,，。;；!！?？]{1,40})"
)
_NO_LONGER_X_Y = re.compile(
    r"(?:不再?|没有?|已经不再?)(?P<verb>在|叫|姓|住在?|去|到|养|用|开|喝|吃|穿|爱|喜欢|学|做|当)"
    r"(?P<old>[^,，。;；!！?？了]{1,16}?)(?:了|啦)?[,，;；]\s*(?:我|他|她|它|我们|而是|而|现在|已经|改|换|是|就|只|都)*"
    r"(?P=verb)(?:的是|了)?(?P<new>[^,，。;；!！?？]{1,24})"
)
_NOT_ONLY = re.compile(
    r"(?P<by>对|跟|和|爱|吃|喝|会|在)(?P<old>[^,，。;；!！?？对]{1,12}?)不(?P<verb>[^,，。;；!！?？了]{1,4})(?:了|啦)?[,，;；]\s*"
    r"(?:而是|而|我|现在)*(?:只是?|就)(?P=by)(?P<new>[^,，。;；!！?？]{1,12}?)(?:才|会)?(?P=verb)"
)
_PLAIN_Y_NOT_X = re.compile(
    r"(?P<new>[^,，。;；!！?？]{2,40})[,，]\s*(?:而)?(?:不是|并非|不在|不叫|"
    r"不姓)(?P<old>[^,，。;；!！?？]{1,24}?)(?:了|啦|的|哦|啊)?$"
)
_Y_NOT_X = re.compile(
    r"(?:应该|其实|其实应该|实际上?)?(?:是|在|叫|姓|去|到|"
    r"要)(?P<new>[^,，。;；!！?？]{1,40}?)[,，]?\s*(?:而)?(?:不是|并非|不在|不叫|不姓|"
    r"而非)(?P<old>[^,，。;；!！?？]{1,24}?)(?:了|啦|的|哦|啊)?$"
)
_NEW = re.compile(
    r"(?:应该是|应当是|其实是|实际是|实际上是|我(?:是|要|想)说(?:的是)?|我(?:是)?指的?是|"
    r"正确的?(?:\S{0,4})?(?:应该)?是|改成|改为|换成|是|叫|在|"
    r"[:：])\s*(?P<new>[^,，。;；!！?？]{1,40})"
)
_MEANT = re.compile(
    r"(?:^|[,，。;；!！\s])(?:不好意思|抱歉|不对|啊|哦|呃)*[,，]?我(?:的意思)?(?:是说|指的是|想说的是|要说的是|"
    r"本来想说(?:的是)?)(?P<new>[^,，。;；!！?？]{1,40})"
)


def correction(sentences: list[list[Clause]], text: str) -> Command | None:
    """A correction of what was told before: that something was wrong, or that not one thing holds but another."""
    for clauses in sentences:
        start, end = clauses[0].start, clauses[-1].end
        said = text[start:end]
        if (
            clauses[0].asks
            or ASKS.search(said)
            or re.match(
                r"\W*(?:他|她|他们|老师|老板|医生|妈妈?|爸爸?|朋友|同事)\S{0,4}(?:说|讲|觉得|认为|写|记|"
                r"算)",
                said,
            )
        ):
            continue
        found = _correction_in(said, text[end:], start, end)
        if found:
            return found
    return None


def _correction_in(said: str, following: str, start: int, end: int) -> Command | None:
    wrong, corrects = _WRONG.search(said), bool(CORRECTS.match(said))
    if wrong and re.search(r"(?:说错|讲错)(?:了)?话|(?:跟|和|对)(?!你)\S{1,6}(?:说|讲)错", said):
        return None
    contrast = (
        _NOT_ONLY.search(said)
        or _NO_LONGER_X_Y.search(said)
        or _NOT_BUT.search(said)
        or _Y_NOT_X.search(said)
        or _PLAIN_Y_NOT_X.search(said)
    )
    old = contrast["old"].strip() if contrast else ""
    new = contrast["new"].strip() if contrast else ""
    meant = _MEANT.search(said)
    if not new and meant:
        new = meant["new"].strip()
    if not new and (wrong or corrects):
        rest = said[wrong.end() :] if wrong else said
        rest = rest if rest.strip(" ,，:：") else following
        stated = _NEW.search(rest)
        new = stated["new"].strip() if stated else rest.strip(" ,，:：。") if wrong else ""
        if rest is following and new:
            end += following.find(new) + len(new)
    if not (wrong or (meant and new) or (corrects and new) or old):
        return None
    return Command(
        "correct",
        "stated" if old else "previous",
        target=old or said,
        replacement=re.sub(r"(?:才对|了|啦|哦|啊|的|吧)$", "", new),
        needs_match=True,
        explicit=bool(wrong or corrects),
        start=start,
        end=end,
    )
