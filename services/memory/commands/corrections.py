"""Which statement a correction is about, and how it reads with the value that holds."""

import re
from collections.abc import Sequence

from services.memory.commands.candidates import CandidateScorer, Stored
from services.memory.commands.contrasts import contrasts
from services.memory.commands.likeness import place_like
from services.memory.commands.stated_values import last_value, values_said
from services.memory.commands.substitution import Substitution, bare_value, substitute
from services.memory.commands.text import SHORT, folded
from services.text.language import language_of
from services.text.mentions import statements_of
from services.text.tokenizer import informative_terms
from services.text.work_requests import asks_about_something, asks_for_work
from state.memory import Command

_NEAR = 3
"""Statements about its subject in which a correction may replace what is like the new value."""
_FIRST_CLAUSE = re.compile(r"[,，。.;；!！](?!\d)|\s[-–—]+\s")
_TOUCHES = 0.15
"""Share of what a correction is about that a statement has at least."""
_DENIED = re.compile(
    r"\b(?:not|n't|no longer)\b(?: \w+){0,3}? (?:to|with|of|in|at|on) (?:the )?(?P<after>\w+)"
    r"|对(?P<before>[^,，对不]{1,8})(?:并)?不",
    re.IGNORECASE,
)
"""A denial about a subject: “not allergic to cats after all”."""
Corrected = tuple[Stored, Substitution, str]
"""The statement that is corrected, how, and the value in it."""


_MOST_STATED = 2_000
"""Characters of a message whose statements are compared with a correction."""


def corrected_in(
    command: Command, told: Sequence[tuple[Stored, str]], before: Sequence[Stored], message: str
) -> Corrected | None:
    """The statement in which the old value stands, or else one of the new value's kind that is meant.

    A request for work or a question states nothing that could be wrong. Where the message does not name the old
    value, it has to be a correction beyond doubt, and to share another word with the statement that it changes.
    """
    told = [pair for pair in told if not _is_request(pair[1])]
    just_said = [(stored, each) for stored in before for each in reversed(stated_in(stored.content))]
    if command.reach == "last":
        return _of_slip(command.replacement, just_said)
    said = f"{command.about} {command.replacement}"
    by_subject = _about_subject(told, CandidateScorer(command.about)) or _about_subject(
        told, CandidateScorer(said)
    )
    if command.target:
        elsewhere = [pair for pair in told if pair not in by_subject]
        found = _first((*just_said, *by_subject, *elsewhere), command.replacement, old=command.target)
        if found or command.reach == "told":
            return found
    if command.certainty != "plain" or asks_about_something(folded(message).lower()):
        return None
    found = _by_value(command, told, by_subject, just_said, message)
    return found if found and (_is_anchored(found, message) or _is_short(message)) else None


def _is_request(statement: str) -> bool:
    sentence = folded(statement).lower()
    return asks_for_work(sentence) or asks_about_something(sentence)


def _is_anchored(found: Corrected, message: str) -> bool:
    """Whether a message shares a word with the statement that it corrects, besides the values."""
    _, change, statement = found
    values = informative_terms(f"{change.old} {change.new}")
    return not (informative_terms(statement) & informative_terms(message)) <= values


def _is_short(message: str) -> bool:
    return len(message) <= SHORT[language_of([message])]


def _of_slip(said: str, just_said: Sequence[tuple[Stored, str]]) -> Corrected | None:
    """The value of what was said last that a word of apology takes back: the first clause says what holds."""
    for value in (_FIRST_CLAUSE.split(said, maxsplit=1)[0], said):
        if found := _first(just_said, value) or _most_like(just_said, bare_value(value)):
            return found
    return None


def _by_value(
    command: Command,
    told: Sequence[tuple[Stored, str]],
    by_subject: Sequence[tuple[Stored, str]],
    just_said: Sequence[tuple[Stored, str]],
    message: str,
) -> Corrected | None:
    """The statement whose value is of the kind of the one that holds."""
    statements = [statement for _, statement in told]
    said = f"{command.about} {command.replacement}"
    places = CandidateScorer(command.about).meant(statements) or CandidateScorer(said).meant(statements)
    meant = [told[place] for place in places]
    if denied := _denied_member(meant or by_subject, message):
        return denied
    near = [*meant, *by_subject[:_NEAR], *just_said]
    values = _new_values(command, [statement for _, statement in near], message)
    for new in values:
        if repeated := _by_shared_words(meant or by_subject[:1], new, message):
            return repeated
        # A value of its kind; without one only what is nearest, and most like it, can be meant.
        for pairs in (meant, by_subject, just_said):
            if found := _first(pairs, new):
                return found
        for pairs in (meant, by_subject[:_NEAR], just_said):
            if found := _most_like(pairs, new):
                return found
    for pairs in (meant or by_subject, just_said):
        if found := _first(pairs, said):
            return found
    return None


def _new_values(command: Command, statements: Sequence[str], message: str) -> list[str]:
    """What may hold instead: what the recogniser takes for it, else what a clause of the message ends with.

    What a statement in memory says already is what does not hold any more.
    """
    given = [_FIRST_CLAUSE.split(command.replacement.strip(), maxsplit=1)[0]] if command.replacement else []
    given += [contrast.new for contrast in contrasts(message)]
    given += values_said(message)
    known = [statement.casefold() for statement in statements]
    return list(
        dict.fromkeys(new for new in given if new and not any(new.casefold() in statement for statement in known))
    )


def _most_like(pairs: Sequence[tuple[Stored, str]], new: str) -> Corrected | None:
    """The first statement with words that are like the new value."""
    for stored, statement in pairs:
        place = place_like(statement, new)
        change = substitute(statement, new, statement[place.start : place.end]) if place else None
        if change:
            return stored, change, statement
    return None


def _first(pairs: Sequence[tuple[Stored, str]], value: str, *, old: str = "") -> Corrected | None:
    """The first statement in which the old value stands, or else one of the kind of that in a text."""
    for stored, statement in pairs:
        change = substitute(statement, value, old)
        if change:
            return stored, change, statement
    return None


def stated_in(text: str) -> list[str]:
    """Statements of a message; those of a long one at its beginning, where people say what it is about."""
    return [
        statement
        for statement in statements_of(text[:_MOST_STATED])
        if not statement.rstrip().endswith(("?", "？"))
    ]


def _denied_member(pairs: Sequence[tuple[Stored, str]], message: str) -> Corrected | None:
    """A statement with a list of which the message denies one member: that one is left out."""
    for stored, statement in pairs:
        for clause in re.split(r"[,，.。;；!！?？]", message):
            for found in _DENIED.finditer(clause):
                for words in (found["after"], found["before"]):
                    change = substitute(statement, "", words.strip()) if words and words.strip() else None
                    if change:
                        return stored, change, statement
    return None


def _by_shared_words(pairs: Sequence[tuple[Stored, str]], new: str, message: str) -> Corrected | None:
    """A statement whose words the message repeats in another clause than the new value: those hold no more."""
    for stored, statement in pairs:
        for clause in re.split(r"[,，.。;；!！?？:：]|\s[-–—]+\s|\b(?:but|so|and|I)\b", message):
            if new not in clause and (old := _tail_shared(statement, clause)):
                place = place_like(old, new)
                within = old[place.start : place.end] if place else last_value(old)
                change = substitute(statement, new, within or old)
                if change:
                    return stored, change, statement
    return None


def _tail_shared(statement: str, clause: str) -> str:
    """The longest end of a statement that a clause repeats, if it is informative."""
    body = statement.strip(" .。!！,，")
    places = [found.start() for found in re.finditer(r"(?<!\w)\w" if body.isascii() else r"\w", body)]
    for place in places[1:]:
        end = body[place:]
        if end.casefold() in clause.casefold() and informative_terms(end):
            return end
    return ""


def _about_subject(told: Sequence[tuple[Stored, str]], about: CandidateScorer) -> list[tuple[Stored, str]]:
    """Those that tell something of a subject, what tells most of it first."""
    scores = about.scores([statement for _, statement in told])
    order = sorted(range(len(told)), key=lambda place: -scores[place])
    return [told[place] for place in order if scores[place] >= _TOUCHES]
