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
    **{"owned": "own", "was": "am", "been": "am", "liked": "like", "loved": "love"},
}
_PAST_TENSE = re.compile(
    rf"\b(?P<who>i|we)(?P<have>'ve| have)?(?: been(?= \w+ing\b)| (?P<verb>{'|'.join(_PRESENT)})\b)",
    re.IGNORECASE,
)
_FORMERLY = re.compile(r"\b(?:used to|previously|in the past)\b", re.IGNORECASE)
_FORMERLY_CHINESE = re.compile(r"曾经?|过去|从前|原先|之前")
_CHINESE = re.compile(r"[\u3400-\u9fff]")

_OVER = Validity(ended=True)

Reader = Callable[[list[Clause]], list[Fact]]


def facts_with_times(clauses: Sequence[Clause], read: Reader) -> list[Fact]:
    """Return the facts of clauses; the text of a fact ends with the words that say when it holds."""
    untimed: list[Clause] = []
    facts: list[Fact] = []
    before = ""
    for clause in clauses:
        found = timed(clause.text, _ANY_DAY)
        if found.words and not found.text.strip(" ,.，。"):  # "From May on, I …" and "…, until May"
            if found.validity.valid_to and untimed:
                facts += _timed(untimed.pop(), found.words, read)
            else:
                before = found.words
            continue
        words = found.words or before
        before = ""
        if found.validity == _OVER and (known := read([clause])):  # "I used to like tea": no longer likes tea
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


def _joined(text: str, words: str, *, is_past: bool) -> str:
    if _CHINESE.search(words):
        return f"{text}，{_FORMERLY_CHINESE.sub('以前', words)}"
    words = _FORMERLY.sub("formerly", words)
    if is_past and "formerly" not in words:
        words = f"formerly {words}"
    return f"{text} {words[:1].lower()}{words[1:]}"


def _in_the_present(text: str) -> tuple[str, bool]:
    """Return a clause in the present, and whether it was in the past; the perfect is about the present, too."""
    found = _PAST_TENSE.search(text)
    if found is None:
        return text, False
    verb = _PRESENT[(found["verb"] or "been").lower()]
    return f"{text[: found.start()]}{found['who']} {verb}{text[found.end() :]}", found["have"] is None
