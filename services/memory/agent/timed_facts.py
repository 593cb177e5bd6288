"""Clauses that say when they hold, taken apart: what they state in the present, and the words of time.

The frames of facts know the present alone. So "I used to live in Paris" is read as "I live in Paris", and the fact
keeps that this is over.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from services.memory.agent.fact import Fact
from services.text.clauses import Clause
from services.time_reference.validity import Validity, timed

_ANY_DAY = datetime(2026, 1, 1)
"""Only the places of the words matter."""
_PRESENT = {
    **{"lived": "live", "worked": "work", "studied": "study", "taught": "teach", "played": "play", "had": "have"},
    **{"owned": "own", "was": "am", "been": "am", "be": "am", "liked": "like", "loved": "love", "did": "do"},
    **{"went": "go", "sang": "sing", "drove": "drive", "smoked": "smoke", "spoke": "speak", "kept": "keep"},
    **{"ran": "run", "danced": "dance", "drank": "drink", "ate": "eat", "hated": "hate", "enjoyed": "enjoy"},
}
_PAST_TENSE = re.compile(
    rf"\b(?P<who>i|we)(?P<have>'ve| have)? (?!been \w+ing\b)(?P<verb>{'|'.join(_PRESENT)})\b", re.IGNORECASE
)
_WAS_DOING = re.compile(r"\b(?P<who>i|we) (?:was|were)(?= \w+ing\b)", re.IGNORECASE)
_LONG_AGO = re.compile(
    r"[, ]*\b(?:back in the days?|in the old days|at one (?:time|point)|back then|growing up|once|"
    r"as an? (?:\w+ )?(?:child|kid|boy|girl|teen(?:ager)?|student)|"
    r"(?:back )?when i was (?:an? )?(?:\w+ )?(?:child|kid|boy|girl|teen(?:ager)?|student|young(?:er)?|little|"
    r"\d{1,2}|at (?:school|college|uni(?:versity)?)|in (?:school|college|uni(?:versity)?|my \w+))|"
    r"(?:back )?in (?:my (?:youth|childhood|teens|twenties|thirties|forties|\d0s)|school|college|uni(?:versity)?)|"
    r"before i (?:\w+ ){0,2}\w+$|for (?:[\w-]+ ){1,2}(?:years?|months?))\b",
    re.IGNORECASE,
)
"""With a verb in the past it says that something is over."""
_FORMER = re.compile(r"(?<=\bi)(?:'m| am) an? (?:ex-|former )(?=\w)", re.IGNORECASE)
_FORMERLY = re.compile(r"\b(?:used to|previously|in the past)\b", re.IGNORECASE)
_FORMERLY_CHINESE = re.compile(r"曾经?|过去|从前|原先|之前")
_LONG_AGO_CHINESE = re.compile(
    r"(?<=[我们家])(?:原来|当年|当初|早年|早些年|小时候|(?:年轻|上学|读书|念书|上大学|大学|高中|刚毕业)(?:的?时候|那时|那会儿?|那几年|时))"
)
_EXPERIENCED = re.compile(
    r"(?<![没未])(?P<verb>[住养学当做干练弹拉吹打踢教读开])过(?:[\d一二两三四五六七八九十几半好]+多?(?:年|个?月|阵子?|学期)多?的?)?"
)
"""The aspect of what was so once: 养过, 学过两年."""
_BOUNDED = re.compile(r"(?<=.)[之以]前$")
_ONWARDS = re.compile(r"起就?$|以来$|开始就?$")
_ME_CHINESE = re.compile(r"(?:我们?|咱们?|俺)家?")
_BARE = re.compile(
    r"(?:(?P<doing>living|working|learning|studying|driving)|"
    r"(?:used to|been|had|was|lived|worked|played|studied|taught|sang|drove|live|work|play|speak)) "
    r"(?!(?:out|well|fine|great|is|was|to|it|that|this|you|for me|on it|on this|on that)\b)"
    r"(?!(?:(?! (?:and|but) ).)*\b(?:is|are|would|should|helps?|makes?|takes|can|could|will|he|she|they|it|you)"
    r"\b)",
    re.IGNORECASE,
)
"""What begins a sentence without its subject, which is who writes it."""
_NO_SUBJECT = re.compile(r"(?:以前|曾经?|过去|从前|原先|之前|原来|used to |formerly |previously )", re.IGNORECASE)
_ME = re.compile(r"(?:i|we)\b|我|咱|俺", re.IGNORECASE)
_CHINESE = re.compile(r"[\u3400-\u9fff]")

_OVER = Validity(ended=True)

Reader = Callable[[list[Clause]], list[Fact]]


def facts_with_times(clauses: Sequence[Clause], read: Reader) -> list[Fact]:
    """Return the facts of clauses; the text of a fact ends with the words that say when it holds."""
    untimed: list[Clause] = []
    facts: list[Fact] = []
    before = ""
    me = ""
    for place, clause in enumerate(clauses):
        speaker = _ME.match(clause.text)
        omitted = me if speaker is None and _NO_SUBJECT.match(clause.text) else ""
        if place == 0 and (bare := _BARE.match(clause.text)):
            omitted = "I am" if bare["doing"] else "I"
        me = speaker[0] if speaker else me if omitted else ""
        said = _said_formerly(_joined_to(omitted, clause.text))
        clause = Clause(said, said.casefold()) if omitted else clause  # noqa: PLW2901 — with its subject
        found = timed(said, _ANY_DAY)
        if found.words and not found.text.strip(" ,.，。"):  # "From May on, I …" and "…, until May"
            if found.validity.valid_to and untimed:
                facts += _timed(untimed.pop(), found.words, read)
            else:
                before = found.words
            continue
        words = found.words or before
        before = ""
        if found.validity == _OVER and (
            known := read([Clause(said, said.casefold())])
        ):  # "I used to like tea": no longer likes tea
            facts += known
        elif words:
            facts += _timed(Clause(found.text, found.text.casefold()), words, read)
        else:
            untimed.append(clause)
    return [*read(untimed), *facts]


def _timed(clause: Clause, words: str, read: Reader) -> list[Fact]:
    stated, is_past = _in_the_present(clause.text)
    return [
        replace(fact, text=_joined(fact.text, words, is_past=is_past))
        for fact in read([Clause(stated, stated.casefold())])
        if not fact.ended
    ]


def _joined_to(subject: str, text: str) -> str:
    return f"{subject} {text}" if subject.isascii() and subject else f"{subject}{text}"


def _said_formerly(text: str) -> str:
    """Return a clause about what was once so with the word that `timed` knows for it: formerly, 以前."""
    if me := _ME_CHINESE.match(text):
        earlier = _LONG_AGO_CHINESE.sub("以前", text, count=1)
        once = _EXPERIENCED.sub(r"\g<verb>", earlier, count=1)
        is_formerly = once != earlier and not timed(once, _ANY_DAY).words
        return f"{me[0]}以前{once[me.end() :]}" if is_formerly else once
    text = _FORMER.sub(" was formerly a ", text)
    bare = _LONG_AGO.sub("", text, count=1).strip(" ,")
    past = _PAST_TENSE.search(bare) or _WAS_DOING.search(bare)
    if bare == text or past is None or past.groupdict().get("have"):
        return text
    return f"formerly {bare}"


def _joined(text: str, words: str, *, is_past: bool) -> str:
    if _CHINESE.search(words):
        words = words if _BOUNDED.search(words) else _FORMERLY_CHINESE.sub("以前", words)
        return f"{text}，{words}{'' if not words.startswith(('从', '自')) or _ONWARDS.search(words) else '起'}"
    words = _FORMERLY.sub("formerly", words)
    if is_past and "formerly" not in words.casefold():
        words = f"formerly {words}"
    return f"{text} {words[:1].lower()}{words[1:]}"


def _in_the_present(text: str) -> tuple[str, bool]:
    """Return a clause in the present, and whether it was in the past; the perfect is about the present, too."""
    if doing := _WAS_DOING.search(text):
        return f"{text[: doing.start()]}{doing['who']} have been{text[doing.end() :]}", True
    found = _PAST_TENSE.search(text)
    if found is None:
        return text, False
    verb = _PRESENT[found["verb"].lower()]
    return f"{text[: found.start()]}{found['who']} {verb}{text[found.end() :]}", found["have"] is None
