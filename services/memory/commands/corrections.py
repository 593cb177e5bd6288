"""Which statement a correction is about, and how it reads with the value that holds."""

import re
from collections.abc import Sequence

from services.memory.commands.candidates import CandidateScorer, Stored
from services.memory.commands.substitution import Substitution, substitute
from services.text.mentions import statements_of
from services.text.tokenizer import informative_terms
from state.memory import Command

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
    """The statement in which the old value stands, or else one of the new value's kind that is meant."""
    just_said = [(stored, each) for stored in before for each in reversed(stated_in(stored.content))]
    if command.reach == "last":
        return _first(just_said, command.replacement)
    said = f"{command.about} {command.replacement}"
    by_subject = _about_subject(told, CandidateScorer(command.about)) or _about_subject(
        told, CandidateScorer(said)
    )
    if command.target:
        elsewhere = [pair for pair in told if pair not in by_subject]
        found = _first((*just_said, *by_subject, *elsewhere), command.replacement, old=command.target)
        if found or command.reach == "told":
            return found
    return _by_value(command, told, by_subject, just_said, message)


def _by_value(
    command: Command,
    told: Sequence[tuple[Stored, str]],
    by_subject: Sequence[tuple[Stored, str]],
    just_said: Sequence[tuple[Stored, str]],
    message: str,
) -> Corrected | None:
    """The statement whose value is of the kind of the one that holds."""
    new = command.replacement
    statements = [statement for _, statement in told]
    places = CandidateScorer(command.about).meant(statements) or CandidateScorer(f"{command.about} {new}").meant(
        statements
    )
    meant = [told[place] for place in places]
    said = f"{command.about} {new}"
    if denied := _denied_member(meant or by_subject, message):
        return denied
    if new and (repeated := _by_shared_words(meant or by_subject[:1], new, message)):
        return repeated
    # A value of its kind, or of the kind of something else that the message says; without one of either kind only
    # what was said last can be meant.
    for pairs, value, freely in (
        (meant, new, False),
        (by_subject, new, False),
        (meant or by_subject, said, False),
        (just_said, new, False),
        (just_said, said, False),
        (just_said[:1], new, command.certainty == "plain"),
    ):
        if value and (found := _first(pairs, value, freely=freely)):
            return found
    return None


def _first(
    pairs: Sequence[tuple[Stored, str]], value: str, *, old: str = "", freely: bool = False
) -> Corrected | None:
    """The first statement in which the old value stands, or else one of the kind of that in a text."""
    for stored, statement in pairs:
        change = substitute(statement, value, old, freely=freely)
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
                change = substitute(statement, new, old)
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
