"""Decides by rules, without a model, whether a message asks about a past conversation, and on which local days.

A word for a time does not suffice: the message must also mention talk between the user and the assistant at that
time, and ask about it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from services.text.language import SEMICOLONS, sentences
from services.time_reference import english_words
from services.time_reference.local_days import time_zone
from services.time_reference.normalisation import (
    DAYS,
    JUST_NOW,
    LAST_TALK,
    LAST_VISIT,
    PAST,
    RECENT,
    TIME,
    Time,
    bounded,
    folded,
    hours_named,
    lowered,
    undated,
)
from services.time_reference.parse import parse
from services.time_reference.question_rules import Rules, is_plain
from services.time_reference.question_rules_chinese import chinese
from services.time_reference.question_rules_english import english
from state.prompt import TimeReference

_SPEAKS = re.compile(
    r"来着|來著|接着|接著|继续|[给給帮幫替你我咱俩聊说谈讲提讨話话題题約约記记吵问荐议議教答告诉訴吐介總总回]|\b(?:we|you|u|i|i've|our|me|last|where)\b|your|again|please|remember|recall|conversation|chat|discuss|session|talk|topic|advice|recommend|suggest|\btips?\b",
    re.IGNORECASE,
)
"""A message without any of these mentions no talk."""
_CHINESE_LETTER = re.compile("[\u3400-\u9fff]")

_JOINED = re.compile(
    r"\s{0,8}(?:,?\s{0,8}(?:和|跟|与|及|到|至|以及|还有|[~～—–、-]|and|or|to|till|until|through|thru|&))\s{0,8}(?:the\s{1,8})?",
    re.IGNORECASE,
)
_PIECE = re.compile(
    r"[,…]+|(?<=:)\s*|\s{1,8}[-–—]+\s+|[—–]{2,}|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])"
    r"|(?<!\byou)(?<!\bu)\s{1,8}(?:and|but|so|then)\s+(?=(?:what|which|how|where|when|who|is|are|was|do|does|did|can|could|please|tell|give|also|then|recommend|suggest|write|show|i\b|let)\b)"
)
_FROM = re.compile(r"from\s+", re.IGNORECASE)
_TIME_AS_SENTENCE = re.compile(
    rf"(?:^|[.!?。\n])\s{{0,8}}(?:(?:on|in|at|about|so|ok|from|关于|就是|那) ?)?{TIME}++"
    r"(?:(?:的?时候|那天|吧| morning| evening| night| afternoon))?(?:[.…](?=\s*\w)|。(?=\s*[\u3400-\u9fff]))"
)
"""A time that stands as a sentence of its own before its question ("Last Monday. What did we talk about?")."""
_SURELY_OVER = re.compile(r"yesterday|\bago\b|\blast\b|\bprevious|just|earlier", re.IGNORECASE)
_YEARLY = re.compile(
    r"(?:\bb(?:irth)?day|\banniversary|\bborn)(?:'s|\s{1,8}(?:is|was|falls))?(?:\s{1,8}(?:on|the))*\s{0,8}$"
    r"|(?:生日|出生|纪念日|紀念日)(?:就?是|在|为|為|[:：])?\s{0,8}$",
    re.IGNORECASE,
)
"""Words around a calendar date that is a birthday or an anniversary; nothing was said then."""
_YEARLY_AFTER = re.compile(r"\s{0,8}是?[^，。,.？?！!]{0,6}(?:生日|出生)(?!那)")
_BEFORE_A_DATE = 40
_LONGEST_CLAUSE = 300
_SHORT = 40
"""Maximum characters of a clause whose time may belong to the question after it."""
_KINDS: dict[str, Literal["days", "last_visit", "just_now", "past"]] = {
    **{DAYS: "days", RECENT: "days", LAST_VISIT: "last_visit", LAST_TALK: "last_visit", JUST_NOW: "just_now"},
    "": "past",
}


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of the message in which marks replace the times."""

    text: str
    begin: int
    rules: Rules


def detect(message: str, timezone: str, now: datetime) -> TimeReference | None:
    """Return the past conversation that a message asks about, or None; `now` has the user's time zone. Raises
    `BadTimeZone` if there is no such time zone."""
    local = now.astimezone(time_zone(timezone))
    shown = bounded(message)
    text = folded(shown)
    if not _SPEAKS.search(text):
        return None
    times, ahead = _times(text, local)
    if not times and not PAST.search(text):
        return None
    marked = _marked(text, times)
    clauses = list(_clauses(marked))
    today = local.date()
    for place, clause in enumerate(clauses):
        if clause.rules.elsewhere.search(clause.text):
            return None
        time = (
            _time_of_talk(clause, times, ahead, text) or _time_beside(clauses, place, times, len(shown))
            if times
            else _any_time_before(clause)
        )
        if time is not None and not _is_to_come(clause, time, today):
            return _reference(shown, marked, clauses, place, time, today)
    return None


def _times(text: str, local: datetime) -> tuple[list[Time], list[int]]:
    """Return the times that are past or going on, joined where the text joins them; and places of future ones."""
    ranges = [each for each in parse(text, local) if not _is_yearly(text, each.begin, each.stop)]
    today = local.date()
    found = [Time(DAYS, _without_from(text, r.begin), r.stop, r.start, r.end) for r in ranges if r.start <= today]
    ahead = [r.begin for r in ranges if r.start > today]
    found += undated(text, today)
    joined: list[Time] = []
    for time in sorted(found, key=lambda time: (time.begin, -time.stop)):
        last = joined[-1] if joined else None
        if last is not None and time.begin < last.stop:
            continue
        if last is not None and (both := _joined(text, last, time)):
            joined[-1] = both
        else:
            joined.append(time)
    return joined, ahead


def _is_yearly(text: str, begin: int, stop: int) -> bool:
    """Return whether a calendar date is that of a birthday or an anniversary."""
    if not any(character.isdigit() for character in text[begin:stop]):
        return False
    before = text[max(0, begin - _BEFORE_A_DATE) : begin]
    return bool(_YEARLY.search(before) or _YEARLY_AFTER.match(text, stop))


def _without_from(text: str, begin: int) -> int:
    """Return where a time begins if "from" before it is left out: "our chat from last week" is about last week."""
    found = _FROM.match(text, begin)
    return found.end() if found else begin


def _joined(text: str, first: Time, second: Time) -> Time | None:
    """Return the days from the earlier to the later time if the text joins them ("Monday to Wednesday")."""
    if not (first.start and first.end and second.start and second.end):
        return None
    if not _JOINED.fullmatch(text, first.stop, second.begin):
        return None
    return Time(DAYS, first.begin, second.stop, min(first.start, second.start), max(first.end, second.end))


def _marked(text: str, times: list[Time]) -> str:
    parts, at = [], 0
    for time in times:
        parts += [text[at : time.begin], time.mark * (time.stop - time.begin)]
        at = time.stop
    marked = lowered("".join([*parts, text[at:]]))
    return _TIME_AS_SENTENCE.sub(lambda found: found[0][:-1] + ",", marked)


def _clauses(text: str) -> Iterator[_Clause]:
    for sentence in sentences(text, SEMICOLONS):
        begin = sentence.start
        for piece in [*_PIECE.finditer(sentence.text), None]:
            stop = sentence.start + piece.start() if piece else sentence.end
            part = text[begin:stop]
            lead = len(part) - len(part.lstrip())
            clause = _Clause(part.strip().rstrip(".!。;"), begin + lead, _rules(part))
            if piece and clause.rules.time_alone.fullmatch(clause.text.strip()):
                continue
            if any(letter.isalnum() for letter in clause.text) or re.search(TIME, clause.text):
                yield clause
            begin = sentence.start + piece.end() if piece else sentence.end


def warm() -> None:
    """Compile the rules, so that no message has to wait for them."""
    chinese()
    english()
    english_words.warm()


def _rules(part: str) -> Rules:
    return chinese() if _CHINESE_LETTER.search(part) else english()


def _time_of_talk(clause: _Clause, times: list[Time], ahead: list[int], text: str) -> Time | None:
    """Return the time at which the two talked; what is to be done at a future time is a plan."""
    of_clause = [time for time in times if 0 <= time.begin - clause.begin < len(clause.text)]
    if not of_clause or len(clause.text) > _LONGEST_CLAUSE:
        return None
    for match in clause.rules.talk.finditer(clause.text):
        inside = [t for t in of_clause if match.start() <= t.begin - clause.begin < match.end()]
        if inside and not any(clause.begin <= place < clause.begin + match.start() for place in ahead):
            return inside[-1]
    for match in clause.rules.within.finditer(clause.text):
        inside = [t for t in of_clause if match.start() <= t.begin - clause.begin < match.end()]
        if inside and _SURELY_OVER.search(text, inside[-1].begin, inside[-1].stop):
            return inside[-1]
    return None


def _time_beside(clauses: list[_Clause], place: int, times: list[Time], length: int) -> Time | None:
    """Return the time of the neighbouring clause, if this clause asks about talk without naming a time."""
    clause = clauses[place]
    if re.search(TIME, clause.text) or not clause.rules.said.search(clause.text):
        return None
    if place + 1 < len(clauses) and clauses[place + 1].rules.time_alone.fullmatch(clauses[place + 1].text):
        beside = place + 1
    elif (
        place
        and len(clauses[place - 1].text) <= _SHORT
        and clause.rules.of_then.search(clause.text)
        and not clause.rules.intends.search(clause.text)
    ):
        beside = place - 1
    else:
        return None
    begin = clauses[beside].begin
    stop = clauses[beside + 1].begin if beside + 1 < len(clauses) else length
    return next((time for time in times if begin <= time.begin < stop), None)


def _is_to_come(clause: _Clause, time: Time, today: date) -> bool:
    """Return whether the words are still to be said, on a day that is not over."""
    return time.end is not None and time.end >= today and clause.rules.intends.search(clause.text) is not None


def _reference(
    message: str, marked: str, clauses: list[_Clause], place: int, time: Time, today: date
) -> TimeReference:
    return TimeReference(
        kind=_KINDS[time.mark],
        start_date=time.start,
        end_date=min(time.end, today) if time.end else None,
        hours=hours_named(folded(message), time.begin, time.stop)
        if time.start and time.start == time.end
        else None,
        matched_text=message[time.begin : time.stop],
        detail=any(clause.rules.detail.search(clause.text) for clause in clauses[max(place - 1, 0) : place + 2]),
        plain=is_plain(marked),
    )


def _any_time_before(clause: _Clause) -> Time | None:
    """Return the words for an unlimited past, if the clause says that the two talked; they narrow nothing."""
    past = PAST.search(clause.text)
    said = clause.rules.said.search(clause.text) and not clause.rules.intends.search(clause.text)
    return Time("", clause.begin + past.start(), clause.begin + past.end()) if past and said else None
