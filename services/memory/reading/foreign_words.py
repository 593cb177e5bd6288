"""Tells whose words the parts of a message are: the user's, those of others, or possibly either's. Pure functions.

Marks, layout and announcements show what a message quotes, forwards, pastes or hands over to be worked on. A text
of others ends at its last closing mark, because its author may have written the earlier ones. A text without marks
is theirs up to its last blank line, or for one sentence if it is announced within a line; nobody can tell whose
words the rest is. Doubtful parts count as words of others, but filing is shown them: a change that rests on them
is asked about, so it is neither made nor lost.

Every pattern is bounded, so that the time is linear in the length of a message.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from services.memory.reading.announcements import announces_text, orders_work
from services.text.caches import text_cache
from services.text.language import Span, sentences

_LONG_QUOTATION, _LONG_CHINESE = 5, 10
"""Words, or Chinese characters, beyond which a quotation counts as a text and not as a name or a title."""
_SPOKEN_TWICE, _SEPARATORS = 2, 2
_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_BLANK_LINE = re.compile(r"\n[ \t]{0,80}\n")
_FENCE = re.compile(r"```|~~~|\"\"\"")
_TAG = re.compile(
    r"<([a-z\u3400-\u9fff][\w-]{0,30})(?:[\s/][^<>\n]{0,200})?>|<!--|<\||\[/?INST\]|\]\(", re.IGNORECASE
)
_SINGLE = re.compile(r"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){6,400})'(?!\w)")
_PAIRS = (("“", "”"), ("「", "」"), ("『", "』"), ("«", "»"), ("《", "》"), ("‘", "’"))
_CLOSING = dict(_PAIRS)
_BEGINS_MARKED = re.compile(r"[ \t\n:：→⇒=>—-]{0,40}?(?P<mark>```|~~~|\"\"\"|[\"'<“「『«‘])")
_CLOSES_SINGLE = re.compile(r"(?<=\S)'(?!\w)")
_HEADER = (
    r"(?:from|to|cc|sent|date|subject|reply-to|发件人|寄件人|寄件者|收件人|收件者|主题|主旨|日期|发送时间|抄送)"
    r"[ \t]{0,4}[:：]"
)
_CLOCK = r"\d{1,2}[:：]\d\d(?:[:：]\d\d)?(?:[ \t]?[ap]\.?m\b\.?)?"
_BORDER = re.compile(
    rf"[ \t]{{0,8}}{_HEADER}.{{0,400}}\n[ \t]{{0,8}}{_HEADER}"
    r"|[ \t]{0,8}(?:subject|主题|主旨)[ \t]{0,4}[:：]"
    r"|[ \t]{0,8}(?:fwd?|fw|forwarded|转发)[^\n:：]{0,30}[:：]"
    r"|[ \t]{0,8}(?:[-*=_~]{3}|[—–]{2})"
    r"|#{1,6}[ \t]"
    r"|dear (?!assistant\b)[^\n,，:：]{1,40}[,，:：]"
    r"|(?:(?:hi|hello) (?!assistant\b|there\b)[a-z]|(?:尊敬|亲爱|敬爱)的(?!助手))"
    r"[^\n,，:：]{0,40}[,，:：][ \t]{0,4}\n"
    r"|(?:on|am|在|于)[ \t]?[^\n]{0,60}\d[^\n]{0,60}(?:wrote|schrieb|写道|寫道)[ \t]{0,4}[:：]",
    re.IGNORECASE,
)
"""Begins a line from which on the message is a text of others: headers of a mail, a mark of forwarding, a ruled
line, a heading, the salutation of a letter, or a name with a time."""
_SIGN_OFF = re.compile(
    r"(?:(?:best|kind|warm|many)[ \t]{1,4})?(?:regards|wishes|thanks|sincerely|cheers|yours [a-z]{1,12})"
    r"[ \t]{0,4},?"
    r"|此致|敬礼|祝好|顺颂[^\n]{0,6}|谨上",
    re.IGNORECASE,
)
"""A line that ends a letter."""
_SPEAKER = re.compile(r"([^\n,，。!?！？;；:：\[\]]{1,24})[:：][ \t]{0,4}\S")
_STAMP = re.compile(
    rf"[^\n,，。!?！？;；]{{1,30}}[ \t,—–-]{{1,4}}(?:(?:today|yesterday|今天|昨天)(?: at)?[ \t]{{0,4}})?{_CLOCK}"
    rf"|\d{{4}}[/.-]\d{{1,2}}[/.-]\d{{1,2}}[ \t]{{1,4}}{_CLOCK}[ \t]{{1,4}}\S{{1,20}}",
    re.IGNORECASE,
)
"""A line with a name and a time, as programs write it above each message of a chat."""
_STAMPED = re.compile(rf"\[[^\]\n]{{0,40}}{_CLOCK}[^\]\n]{{0,20}}\]")
_CLAUSE = re.compile(r"(?:[^\n.!?。！？;；:：—→⇒>]|;(?=\w))+|(.)", re.DOTALL)
_LEADS_ON, _JUDGED = ":：→⇒>—\n", 200
"""Marks that announce a text, and how many characters before one are judged."""


@dataclass(frozen=True)
class Part(Span):
    """A part of a message, and whose words it is."""

    whose: Literal["user", "others", "either"] = "others"


@text_cache(64)
def parts_of(message: str) -> tuple[Part, ...]:
    """Return the parts of a message in order; joined, they are the whole message."""
    finders = (_fenced, _elements, _quotations, _of_lines, _announced)
    found = [each for find in finders for each in find(message)]
    others, either = (_merged(each for each in found if each.whose == whose) for whose in ("others", "either"))
    edges = sorted({0, len(message), *(at for each in (*others, *either) for at in (each.start, each.end))})
    return tuple(
        Part(start, end, "others" if _covers(others, start) else "either" if _covers(either, start) else "user")
        for start, end in pairwise(edges)
    )


def own_text(message: str) -> str:
    """Return the user's own words in a message, each part on a line of its own."""
    own = (message[each.start : each.end].strip() for each in parts_of(message) if each.whose == "user")
    return "\n".join(each for each in own if any(map(str.isalnum, each)))


def foreign_text(message: str) -> str:
    """Return what a message quotes, shows or asks to work on; empty if it has no such text."""
    foreign = (message[each.start : each.end].strip() for each in parts_of(message) if each.whose != "user")
    return "\n".join(foreign)


def shown_text(message: str, left_out: str) -> str:
    """Return a message in which text that is surely of others is replaced by `left_out`."""
    return "".join(
        left_out if each.whose == "others" else message[each.start : each.end] for each in parts_of(message)
    )


def _merged(found: Iterable[Part]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if spans and each.start <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(spans[-1].end, each.end))
        elif each.end > each.start:
            spans.append(Span(each.start, each.end))
    return tuple(spans)


def _covers(spans: Sequence[Span], at: int) -> bool:
    place = bisect_right(spans, at, key=lambda each: each.start)
    return place > 0 and at < spans[place - 1].end


def _without_end(message: str, start: int, *, within_a_line: bool = False) -> Iterator[Part]:
    """Return the end of a text without marks: before its last paragraph, or within a line after its first
    sentence."""
    last = len(message.rstrip())
    begin = start + len(message[start:]) - len(message[start:].lstrip())
    blank = [each.end() for each in _BLANK_LINE.finditer(message, begin) if each.end() < last]
    end = len(message)
    if blank:
        end = blank[-1]
    elif within_a_line and begin < end:
        end = begin + len(sentences(message[begin:])[0].text)
    yield Part(start, end)
    yield Part(end, len(message), "either")


def _fenced(message: str) -> Iterator[Part]:
    begin: re.Match[str] | None = None
    for found in _FENCE.finditer(message):
        if begin is None:
            begin = found
        elif found[0] == begin[0]:
            yield Part(begin.start(), found.end())
            begin = None
    if begin is not None:
        yield Part(begin.start(), len(message))


def _elements(message: str) -> Iterator[Part]:
    """Elements up to their last closing mark, as what is inside may hold one; what is never closed, to the end."""
    end = 0
    folded_case: str | None = None
    for found in _TAG.finditer(message):
        if found.start() < end:
            continue
        if found[0] == "](":  # a link with its label
            start = message.rfind("[", max(found.start() - _JUDGED, 0), found.start())
            end = (message.find(")", found.end()) + 1) or len(message)
            yield Part(max(start, 0), end)
            continue
        folded_case = folded_case if folded_case is not None else message.lower()
        mark = "-->" if found[0] == "<!--" else f"</{found[1]}>".lower() if found[1] else ""
        last = folded_case.rfind(mark, found.end()) if mark and len(folded_case) == len(message) else -1
        end = last + len(mark) if last >= 0 else len(message)
        yield Part(found.start(), end)


def _quotations(message: str) -> Iterator[Part]:
    for opening, closing in _PAIRS:
        yield from _paired(message, opening, closing)
    straight = [at for at, each in enumerate(message) if each == '"']
    if len(straight) % 2 and not (straight[-1] and message[straight[-1] - 1].isdigit()):
        yield Part(straight[0], len(message))
    else:
        yield from _texts(message, zip(straight[::2], straight[1::2], strict=False))
    yield from _texts(message, ((each.start(), each.end() - 1) for each in _SINGLE.finditer(message)))


def _paired(message: str, opening: str, closing: str) -> Iterator[Part]:
    """Quotations with marks that differ. A closing mark too many shows that the text itself held one."""
    depth, begin, found = 0, 0, list[tuple[int, int]]()
    too_many: Part | None = None
    for at, each in enumerate(message):
        if each == opening:
            begin = at if depth == 0 else begin
            depth += 1
        elif each == closing and depth:
            depth -= 1
            if depth == 0:
                found.append((begin, at))
        elif each == closing and closing != "’":  # an apostrophe
            too_many = Part(too_many.start if too_many else found[0][0] if found else 0, at + 1)
    if too_many:
        yield too_many
    if depth:
        found.append((begin, len(message) - 1))
    yield from _texts(message, found)


def _texts(message: str, pairs: Iterator[tuple[int, int]] | Sequence[tuple[int, int]]) -> Iterator[Part]:
    """Quotations that are more than a name or a title."""
    for start, end in pairs:
        inside = message[start + 1 : end]
        long = len(_WORD.findall(inside)) > _LONG_QUOTATION or len(_CHINESE.findall(inside)) > _LONG_CHINESE
        if long:
            yield Part(start, end + 1)


def _of_lines(message: str) -> Iterator[Part]:
    """Quoted lines, rows of tables, letters, what several people say, and all below a border."""
    at, border = 0, len(message)
    speakers: dict[str, list[int]] = {}
    before: tuple[str, Span] | None = None
    stamp: Span | None = None
    for line in message.splitlines(keepends=True):
        span, text = Span(at, at + len(line)), line.strip()
        at = span.end
        if text.startswith((">", "＞")):
            yield Part(span.start, span.end)
        elif span.start < border and _BORDER.match(message, span.start):
            border = span.start
        if (shape := _row(text)) and before and before[0] == shape:
            yield Part(before[1].start, span.end)
        before = (shape, span) if shape else None
        if len(text) <= _JUDGED and _SIGN_OFF.fullmatch(text):
            yield Part(0, span.start)
        is_stamp = _STAMP.fullmatch(text) is not None
        if stamp and text and not is_stamp:  # a list of appointments has nothing between its lines
            speakers.setdefault("", []).append(stamp.start)
        stamp = span if is_stamp else None if text else stamp
        if _STAMPED.match(text):
            border = min(border, span.start)
        elif spoken := _SPEAKER.match(text):
            speakers.setdefault(spoken[1].strip().casefold(), []).append(span.start)
    border = min((border, *(starts[0] for starts in speakers.values() if len(starts) >= _SPOKEN_TWICE)))
    if border < len(message):
        yield from _without_end(message, border)


def _row(line: str) -> str:
    """Return the shape of a table row; empty = the line is none."""
    for mark in ("\t", "|"):
        if line.count(mark) >= _SEPARATORS:
            return mark
    commas = line.count(",")
    return f",{commas}" if commas >= _SEPARATORS and ", " not in line else ""


def _announced(message: str) -> Iterator[Part]:
    """Yield texts that an announcement or an order for work is about: what follows it, or what it ends."""
    clauses = [
        (each.start(), each[0].strip()) for each in _CLAUSE.finditer(message) if each[0].strip() and not each[1]
    ]
    if clauses and orders_work(clauses[-1][1][-_JUDGED:], alone=True):
        yield Part(0, clauses[-1][0])
    past = 0
    for start, text in clauses[:-1]:
        if start < past:  # it stands in a text that has been found
            continue
        end = start + len(text)
        nearest = text if len(text) <= _JUDGED else f"{text[:_JUDGED]} {text[-_JUDGED:]}"
        mark = message[end : end + _JUDGED].lstrip(" \t\"'”’」』)")[:3] or "\n"
        leads_on = any(each in mark for each in _LEADS_ON) or mark.startswith(("->", "=>", "--"))
        orders = orders_work(nearest, alone=False)
        if orders or (leads_on and announces_text(nearest, below="\n" in mark)):
            past = _end_of_marked(message, end)
            if not past:
                yield from _without_end(message, end, within_a_line=not orders)
                return
            yield Part(end, past)


def _end_of_marked(message: str, start: int) -> int:
    """Return the end of a text that begins with a mark, which is after its last closing mark; 0 if it has none."""
    begun = _BEGINS_MARKED.match(message, start)
    if begun is None:
        return 0
    mark = begun["mark"]
    if mark == "<":
        tag = _TAG.match(message, begun.start("mark"))
        closing = f"</{tag[1]}>" if tag and tag[1] else ""
    else:
        closing = _CLOSING.get(mark, mark)
    if closing == "'":
        ends = [each.start() for each in _CLOSES_SINGLE.finditer(message, begun.end())]
        return ends[-1] + 1 if ends else 0
    if closing == mark and message.count(mark, begun.start("mark")) % 2:  # the text itself holds one
        return 0
    last = message.rfind(closing, begun.end()) if closing else -1
    return last + len(closing) if last >= 0 else 0
