"""What a message says has taken the place of something: “from Mondays to Wednesdays”, 陶姐走了，现在归柏经理管."""

import re
from collections.abc import Iterator

from services.memory.commands.stated_values import (
    CHINESE_CLAUSE,
    ENGLISH_CLAUSE,
    PRONOUN,
    cut,
    last_value,
    value_of,
    values_said,
)

_NEAR = 2
"""Clauses from that which says what is gone to the one that says what has come."""
_HAS_CHANGED = re.compile(
    r"\b(?:now|no longer|moved?|changed?|switched|shifted|swapped|rescheduled|from now|these days|as of|"
    r"should(?:['’]ve| have)? be|instead|anymore|any more|turns out|replaced|renamed|transferred|postponed)\b",
    re.IGNORECASE,
)
_ENGLISH = (
    # What is left behind, and what is taken up instead: “Wednesdays now rather than Mondays”.
    re.compile(
        r"(?P<clause>[^,.!?;]*?)\b(?:rather than|instead of|and no longer)(?: (?:at|in|on|the|a|an|my))* "
        r"(?P<old>[^,.!?;]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:moved|changed?|switched|shifted|rescheduled|postponed|transferred|renamed)"
        r"\b[^,.!?;]{0,30}? from (?P<old>[^,.!?;]+?) (?:over )?(?:to|for|into) (?P<new>[^,.!?;]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:swapped|replaced|traded|exchanged) (?:out )?(?P<old>[^,.!?;]+?) (?:for|with|by) (?P<new>[^,.!?;]+)",
        re.IGNORECASE,
    ),
)
_GONE = re.compile(
    r"^(?:(?:so|and|well|because|since|oh|btw|my|our) )*(?P<old>[\w'’-]+(?: [\w'’-]+){0,2}?)"
    r"(?:['’]s| has| have| is| was)?(?: just| already| finally)? "
    r"(?:left|gone bust|went bust|quit|resigned|retired|moved on|closed(?: down)?|shut(?: down)?|cancelled|"
    r"fallen through|fell through|been sacked|been fired|been replaced|is history)\b",
    re.IGNORECASE,
)
_HAS_COME = re.compile(r"\b(?:now|instead|these days|new)\b", re.IGNORECASE)
_DID_I_SAY = re.compile(r"\bdid i (?:say|write|put|type|tell you)\s+(?P<old>[^?,.!]+)\?", re.IGNORECASE)
_CHINESE = re.compile(
    r"(?:从|由|把|将)(?P<old>[^，,。；从由把将]{1,12}?)(?:改|换|挪|调|搬|转|变|升|涨|降|推迟|提前)"
    r"(?:期|岗|签)?(?:到|成|为|去|做)了?(?P<new>[^，,。；了]{1,12})"
)
_CHINESE_GONE = re.compile(
    r"^(?:原来的|之前的|以前的|那个|因为|我们)?(?P<old>[^，,。；]{1,8}?)"
    r"(?:已经|早就|都|上周|上个?月|前几天|刚刚?|昨天)*(?:走了|离职|辞职|不干了|跳槽|调走|倒闭|关门|停业|黄了|退休)"
)
_CHINESE_HAS_COME = re.compile(
    r"(?:现在|如今|目前|改|换)[^，,。；]{0,6}?(?:归|是|由|换成|换了|叫|用|在|跟|找|改成|改到|去)"
    r"(?P<new>[^，,。；]{1,12}?)(?:管|负责|接手|带|接|来管|代替)?(?:了|啦)?$"
)


def changed_in_english(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of what held before and what holds now."""
    if _HAS_CHANGED.search(text):
        for rule in _ENGLISH:
            for found in rule.finditer(text):
                given = found.groupdict()
                new = cut(given["new"]) if given.get("new") else value_of(given["clause"])
                old = cut(given["old"])
                if old and not PRONOUN.search(old):
                    yield old, new
    clauses = [clause.strip() for clause in ENGLISH_CLAUSE.split(text) if clause and clause.strip()]
    for at, clause in enumerate(clauses):
        gone = _GONE.match(clause)
        if gone and not PRONOUN.search(gone["old"]):
            near = (*clauses[at + 1 : at + 1 + _NEAR], *clauses[max(at - 1, 0) : at])
            if new := next((last_value(other) for other in near if _HAS_COME.search(other)), ""):
                yield gone["old"], new


def asked_back(message: str) -> Iterator[tuple[str, str]]:
    """What the user wonders to have said, and what he says instead: “did I say kilos? It's pounds.”"""
    for found in _DID_I_SAY.finditer(message):
        values = values_said(message[found.end() :])
        if values:
            yield cut(found["old"]), values[0]


def changed_in_chinese(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of what held before and what holds now."""
    for found in _CHINESE.finditer(text):
        yield found["old"], found["new"]
    clauses = [clause for clause in CHINESE_CLAUSE.split(text) if clause]
    for at, clause in enumerate(clauses):
        gone = _CHINESE_GONE.match(clause)
        for other in clauses[at + 1 : at + 1 + _NEAR] if gone else ():
            if come := _CHINESE_HAS_COME.search(other):
                yield gone["old"] if gone else "", come["new"]
                break
