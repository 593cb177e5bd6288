"""The clauses of a message that gives a memory command: what they name, tell of the user, and keep."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from services.memory.commands.features import Token
from services.memory.commands.model import Part
from services.text.sentences import Span
from services.text.tokenizer import informative_terms

_OF_TELLING = frozenset(("remove", "keep", "memory", "said", "secret"))
"""Classes of words that make a clause one about what is told."""
_ABOUT_MEMORY = ("remove", "keep", "memory", "said", "secret", "stays")
_OF_COMMANDS = frozenset((*_ABOUT_MEMORY, "not", "ask", "you", "this", "just_now", "wrong", "always", "ask_about"))
"""Classes of words that tell nothing of what a command is about."""
_OF_THE_REST = re.compile(
    r"(?:但|而|不过)?(?:别的|其他|其它|其余|剩下)|(?:but|and)?(?:the)?(?:rest|others?|everythingelse)"
)
"""How a clause begins that says what is to become of all that is not named."""


def announces(found: Sequence[Token]) -> bool:
    """Whether something is told after a colon: “don't keep this: …”."""
    at = next((at for at, token in enumerate(found) if token.is_mark and token.text[:1] in ":："), None)
    return at is not None and bool(informative_terms(joined(found[at:])))


def names_something(clause: Sequence[Token]) -> bool:
    """Whether what is to be removed is named beside the verb that says so."""
    return any("remove" in token.classes for token in clause) and _says_something(clause)


def tells_beside(found: Sequence[Token], *, least: int) -> bool:
    """Whether a clause beside the command tells something, and does not only ask."""
    told = False
    for is_mark, clause in groupby(found, key=lambda token: token.is_mark):
        own = list(clause)
        if is_mark:
            told = told and not own[0].text.startswith("?")
            if told:
                return True
            continue
        of_command = any(not _OF_TELLING.isdisjoint(token.classes) for token in own)
        told = not of_command and len(informative_terms(joined(not_of_commands(own)))) >= least
    return told


def joined(found: Sequence[Token]) -> str:
    """The words of clauses as one text."""
    return ("" if found and not found[0].text.isascii() else " ").join(token.text for token in found)


def tells_of_user(clause: Sequence[Token]) -> bool:
    """Whether a clause tells something of the user, and not of the telling."""
    classes = {name for token in clause for name in token.classes}
    if "me" not in classes or not classes.isdisjoint(("remove", "keep", "said", "secret", "just_now", "this")):
        return False
    return _says_something(clause)


def _says_something(clause: Sequence[Token]) -> bool:
    return bool(informative_terms(joined(not_of_commands(clause))))


def not_of_commands(clause: Sequence[Token]) -> list[Token]:
    """The words of a clause that do not belong to a command."""
    left: list[Token] = []
    covered = 0
    for at, token in enumerate(clause):
        if not _OF_COMMANDS.isdisjoint(token.classes):
            covered = max(covered, at + token.span)
        if at >= covered:
            left.append(token)
    return left


def clauses_of(found: Sequence[Token]) -> Iterator[list[Token]]:
    """What stands between marks."""
    for is_mark, clause in groupby(found, key=lambda token: token.is_mark):
        if not is_mark:
            yield list(clause)


def beside_removal(found: Sequence[Token]) -> list[Span]:
    """The clauses beside those that name what they ask to remove; none where no clause does."""
    clauses = list(clauses_of(found))
    if not any(map(names_something, clauses)):
        return []
    return [Span(clause[0].start, clause[-1].end) for clause in clauses if not names_something(clause)]


def whole_clauses(found: Sequence[Token], parts: Sequence[Part]) -> list[Span]:
    """What is to be remembered, to the ends of the clauses in which it stands."""
    targets = {token.start for token, part in zip(found, parts, strict=True) if part == "target"}
    spans = []
    for clause in clauses_of(found):
        places = [at for at, token in enumerate(clause) if token.start in targets]
        if places:
            first = places[0]
            while (
                first and "keep" not in clause[first - 1].classes and clause[first - 1] in not_of_commands(clause)
            ):
                first -= 1
            spans.append(Span(clause[first].start, clause[-1].end))
    return [Span(spans[0].start, spans[-1].end)] if spans else []


def kept_clauses(found: Sequence[Token]) -> list[Span]:
    """The clauses that say what is to stay."""
    kept = []
    for clause in clauses_of(found):
        named = {name for token in clause for name in token.classes}
        stays = any(
            "stays" in token.classes and not (at and "you" in clause[at - 1].classes)  # “whatever you keep on me”
            for at, token in enumerate(clause)
        )
        is_wish = stays and named.isdisjoint(("not", "remove")) and "me" not in clause[0].classes
        of_the_rest = _OF_THE_REST.match("".join(token.text for token in clause)) is not None
        if of_the_rest or (is_wish and any(not token.classes for token in clause)):
            kept.append(Span(clause[0].start, clause[-1].end))
    return kept


def spans_of_commands(found: Sequence[Token]) -> list[Span]:
    """Where the words of commands stand."""
    return [
        Span(token.start, found[min(at + token.span, len(found)) - 1].end)
        for at, token in enumerate(found)
        if not _OF_COMMANDS.isdisjoint(token.classes)
    ]
