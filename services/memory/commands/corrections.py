"""Which piece of memory a correction is about, and how it reads with the value that holds. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from services.memory.commands.contrasts import contrasts
from services.memory.commands.holdings import CoreItem, Place
from services.memory.commands.likeness import place_like
from services.memory.commands.pieces import content_of
from services.memory.commands.stated_values import values_said
from services.memory.commands.substitution import Substitution, substitute, values_by_kind, with_its_unit
from services.text.mentions import worth_keeping
from services.text.tokenizer import informative_terms, lone_characters
from state.memory import Command

Evidence = Literal["the old value", "a value of its kind", "likeness", "nothing", "a denial"]
_Sureness = Literal["plain", "likely", "news", "statement"]
_LEAST: dict[Evidence, dict[_Sureness, float]] = {
    "the old value": {"plain": 0.0, "likely": 0.0, "news": 0.6, "statement": 0.7},
    "a value of its kind": {"plain": 0.35, "likely": 0.6, "news": 0.6, "statement": 0.6},
    "likeness": {"plain": 0.4, "likely": 0.9, "news": 1.0, "statement": 1.0},
    "nothing": {"plain": 0.8, "likely": 0.8, "news": 0.8, "statement": 0.9},
    "a denial": {"plain": 0.25, "likely": 0.25, "news": 0.5, "statement": 0.8},
}
"""Probability from which on a piece is corrected, by what tells the words that are replaced, and by how sure it is
that the message is a correction: each chosen on sets that were left out of the training."""
_LEAST_ALONE, _LEAST_TO_REMOVE_ALONE = 0.6, 0.6
"""The same for a piece of an earlier exchange that shares no word with the message but the values."""
_LEAST_JUST_SAID = 0.25
"""The same for a value of its kind in what was said just before, by what is likely a correction."""
_LEAST_TOLD = 0.5
"""The same for a piece of an earlier exchange of which a message that may be no correction denies a word."""
_LEAST_NAME = 0.6
"""The same where one name takes the place of another."""
_LEAST_STATED = 0.85
"""The same where a statement without a word of change has another name, or number without a unit."""
_LEAST_ONLY, _LEAST_ONLY_ELSEWHERE = 0.1, 0.25
"""The same, beyond doubt a correction, where nothing else that is held has such a value; and where its text
shares no word with the message but the values."""
_LEAST_MISSPELT = 0.02
"""Probability from which on a piece may have a misspelt word."""
_MISSPELT = 0.6
"""Share of letters in order from which on two words may be one that was misspelt."""
_NEAR_BEST = 0.3
"""Share of the likeliest one's probability from which on the piece with that value is corrected."""
_COMPARED = frozenset(("weekday", "date", "month", "day", "time", "measure", "ordinal", "number", "colour"))
"""Kinds of values of which a message may set one against another."""
_MOST_DENIED = 3
"""Likeliest pieces among which the one is sought that a message denies in its own words."""
_FIRST_CLAUSE = re.compile(r"[,，。.;；!！](?!\d)|\s[-–—]+\s")
_DENIED = re.compile(
    r"\b(?:not|n't|no longer)\b(?: \w+){0,3}? (?:to|with|of|in|at|on) (?:the )?(?P<after>\w+)"
    r"|对(?P<before>[^,，对不]{1,8})(?:并)?不",
    re.IGNORECASE,
)
"""A denial about a subject: “not allergic to cats after all”."""
_VAGUELY = re.compile(r"^(?:什么|啥|那个|这个)")
_PLACED = re.compile(r" (?:on|in|at|for|with|of|from|to) ", re.IGNORECASE)
"""What goes on about a value behind it: “maize on the big field”."""
_NO_LONGER = re.compile(r"\b(?:any ?more|any longer|no longer|after all)\b|了\W*$|不再|其实", re.IGNORECASE)


@dataclass(frozen=True)
class Correction:
    """A piece of memory that does not hold any more."""

    place: Place
    change: Substitution | None
    """How it reads with the value that holds; None = it goes, and the message says what holds."""
    old: str
    """The value that does not hold, as far as it is known."""
    by: Evidence
    """What tells which words are replaced."""


def correction_of(
    command: Command, likely: Sequence[tuple[float, Place]], just_said: Sequence[Place], message: str
) -> Correction | None:
    """The piece that a message corrects: that with the old value, else the one that is meant beyond doubt.

    What asks or orders something states nothing that could be wrong.
    """
    likely = [(share, place) for share, place in likely if not content_of(place.text).asks]
    just_said = [place for place in just_said if not content_of(place.text).asks]
    if command.reach == "last":
        return _of_slip(command.replacement, just_said)
    found = _of_old_value(command, likely, just_said, message)
    if found or command.reach == "told" or not likely:
        return found
    best, meant = likely[0]
    # What is held twice shares the probability that it is meant.
    share = best + sum(each for each, place in likely[1:] if place.says_the_same(meant))
    if denied := next(filter(None, (_denied_member(place, message) for _, place in likely[:_MOST_DENIED])), None):
        return denied if share >= _least(command, denied, just_said, message) else None
    slot = _slot(command, likely, message) or _misspelt(command, likely, just_said, message)
    found = (
        slot or _with_value(meant, command, message) or Correction(meant, None, _old(meant, command), "nothing")
    )
    only_states = command.reach == "statement" and found.by == "nothing"
    if only_states and (_is_of_another(meant, message) or _counts_on(meant, message)):
        return None
    if found.by == "nothing" and _says_nothing(meant):
        return None
    return found if slot or share >= _least(command, found, just_said, message) else None


def _of_old_value(
    command: Command, likely: Sequence[tuple[float, Place]], just_said: Sequence[Place], message: str
) -> Correction | None:
    """The piece that has the old value in the user's own words."""
    if not command.target or not command.replacement or command.is_news:
        return None
    if (
        len(command.target) == 1
        and not command.target.isascii()
        and command.target not in lone_characters(message)
    ):
        return None
    least = 0.0 if command.certainty == "plain" else _LEAST_TOLD
    literal = [*just_said, *(place for share, place in likely if share >= least)]
    olds = dict.fromkeys((command.target, _VAGUELY.sub("", command.target), _PLACED.split(command.target)[0]))
    found = (_first(literal, command.replacement, old=old) for old in olds if old)
    return next(filter(None, found), None)


def _slot(command: Command, likely: Sequence[tuple[float, Place]], message: str) -> Correction | None:
    """The value that a sure correction replaces where only one of all that is held can be meant.

    That is the only one of the new one's kind; of several, the only one with its unit and as many digits, or the
    only one in the text that is likeliest meant.
    """
    values = content_of(message).values
    kinds = values.keys() - {"name", "kin", "number"} or values.keys() & {"number"}
    if command.certainty != "plain" or not kinds or not likely:
        return None
    best, likeliest = likely[0]
    alone = [values[kind][0].strip(" .,") for kind in sorted(kinds) if len(values[kind]) == 1]
    said = [with_its_unit(value, message) for value in alone]
    found: list[Correction] = []
    for _, place in likely:
        if not kinds.isdisjoint(content_of(place.text).values):
            by_value = (_first([place], value) for value in said)
            corrected = _with_value(place, command, message) or next(filter(None, by_value), None)
            if corrected and corrected.by in {"a value of its kind", "the old value"}:
                found.append(corrected)
    alike = [each for each in found if _is_of_one_form(each)]
    beside = (
        [each for each in found if each.place.of is likeliest.of] if best >= _LEAST["likeness"]["plain"] else []
    )
    only = next((some for some in (found, alike, beside) if len({each.place.said for each in some}) == 1), None)
    if only is None:
        return None
    corrected = only[0]
    share = max(share for share, place in likely if place.of is corrected.place.of)
    least = _LEAST_ONLY_ELSEWHERE if _is_elsewhere(corrected, message) else _LEAST_ONLY
    is_near = share >= max(least, _NEAR_BEST * best)
    return corrected if is_near and not _is_a_name(corrected) else None


def _is_of_one_form(found: Correction) -> bool:
    """Whether two values have the same unit or sign, and as many digits."""
    if found.change is None:
        return False
    old, new = (re.sub(r"\d", "0", each.casefold().strip(" .,")) for each in (found.old, found.change.new))
    return old == new and len(old) > 1


def _is_elsewhere(found: Correction, message: str) -> bool:
    """Whether the whole text of a piece shares no word with the message but the values."""
    of = found.place.of
    values = informative_terms(f"{found.old} {found.change.new if found.change else ''}")
    whole = of.labelled if isinstance(of, CoreItem) else of.content
    return (informative_terms(whole) & informative_terms(message)) <= values


def _least(command: Command, found: Correction, just_said: Sequence[Place], message: str) -> float:
    """Probability that a piece has to reach to be corrected."""
    sureness: _Sureness = "plain" if command.certainty == "plain" else "likely"
    if command.reach in {"news", "statement"}:
        sureness = command.reach
    least = _LEAST[found.by][sureness]
    if found.by == "a value of its kind" and _is_a_name(found):
        least = max(least, _LEAST_NAME)
    if command.reach == "statement" and (_is_a_name(found) or _is_a_number(found)):
        return _LEAST_STATED
    values = informative_terms(f"{found.old} {found.change.new if found.change else ''}")
    is_alone = (informative_terms(found.place.text) & informative_terms(message)) <= values
    is_just_said = any(place.of is found.place.of for place in just_said)
    if is_just_said and found.by == "a value of its kind" and sureness == "likely":
        least = _LEAST_JUST_SAID
    if not is_alone or is_just_said or found.by in {"the old value", "a denial"}:
        return least
    return max(least, _LEAST_TO_REMOVE_ALONE if found.by == "nothing" else _LEAST_ALONE)


def _of_slip(said: str, just_said: Sequence[Place]) -> Correction | None:
    """The value of what was said last that a word of apology takes back: the first clause says what holds."""
    for value in (_FIRST_CLAUSE.split(said, maxsplit=1)[0], said):
        if found := _first(just_said, value):
            return found
    return None


def _with_value(meant: Place, command: Command, message: str) -> Correction | None:
    """A piece with the value that holds, where it is told which value it replaces."""
    if (
        command.target
        and command.replacement
        and (found := _first([meant], command.replacement, old=command.target))
    ):
        return found
    if command.certainty == "plain" and (found := _set_against(meant, message)):
        return found
    for new in _new_values(command, meant.text, message):
        if found := _first([meant], new):
            # News says by itself what holds; a name that is put into other words may say what nobody said.
            if not command.is_news or not _is_a_name(found):
                return found
            return replace(found, change=None, by="nothing" if command.reach == "statement" else found.by)
        if not command.is_news and (found := _most_like([meant], new)):
            return found
    return None


def _set_against(meant: Place, message: str) -> Correction | None:
    """A value of a piece that the message has as well, beside the only other one of its kind: “110, not 85”."""
    known, own = content_of(meant.text).values, content_of(message).values
    for kind in sorted((_COMPARED & own.keys()) - {"number"} or {"number"} & own.keys()):
        said = {value.strip(" .,") for value in own[kind]}
        olds = said & {value.strip(" .,") for value in known.get(kind, ())}
        is_plain = kind != "number" or all(map(str.isdigit, said))
        if is_plain and len(olds) == 1 and len(said) == 2:  # noqa: PLR2004
            (old,), (new,) = olds, said - olds
            if found := _first([meant], new, old=old):
                return found
    return None


def _is_a_name(found: Correction) -> bool:
    """Whether what is replaced is no figure, time or other value that is known by its form."""
    change = found.change
    if change is None:
        return False
    kinds = values_by_kind(change.old).keys() & values_by_kind(change.new).keys()
    return not kinds - {"name"}


def _is_a_number(found: Correction) -> bool:
    """Whether one number takes the place of another, of which nothing else shows that both count the same."""
    change = found.change
    return change is not None and values_by_kind(change.old).keys() & values_by_kind(change.new).keys() <= {
        "number"
    }


def _says_nothing(meant: Place) -> bool:
    """Whether a piece is a word out of a sentence, or a few words of no matter: nothing in it could be untrue."""
    text = meant.text
    is_fragment = not isinstance(meant.of, CoreItem) and text.strip() != meant.of.content.strip()
    is_one_word = is_fragment and text.isascii() and len(text.split()) == 1
    return is_one_word or not worth_keeping(text) or all(map(str.isdigit, informative_terms(text)))


def _is_of_another(meant: Place, message: str) -> bool:
    """Whether a piece and a message share no word, and so may speak of different things."""
    return informative_terms(meant.text).isdisjoint(informative_terms(message))


def _counts_on(meant: Place, message: str) -> bool:
    """Whether both have a figure, a day or the like: step 3 is as true as step 4."""
    kinds = content_of(meant.text).values.keys() & content_of(message).values.keys()
    return not kinds <= {"name", "kin"}


def _new_values(command: Command, known: str, message: str) -> list[str]:
    """What may hold instead: what the recogniser takes for it, else what a clause of the message ends with."""
    given = [_FIRST_CLAUSE.split(command.replacement.strip(), maxsplit=1)[0]] if command.replacement else []
    given += [contrast.new for contrast in contrasts(message)]
    given += values_said(message)
    return list(dict.fromkeys(new for new in given if new and new.casefold() not in known.casefold()))


def _old(meant: Place, command: Command) -> str:
    """The words by which a message names what does not hold any more, if the piece has them."""
    return command.target if command.target and command.target.casefold() in meant.text.casefold() else ""


def _misspelt(
    command: Command, likely: Sequence[tuple[float, Place]], just_said: Sequence[Place], message: str
) -> Correction | None:
    """Words of what was said just before that a sure correction spells nearly the same."""
    if command.certainty != "plain":
        return None
    may_be_meant = {place.said for share, place in likely if share >= _LEAST_MISSPELT}
    for place in (each for each in just_said if each.said in may_be_meant):
        for new in _new_values(command, place.text, message):
            like = place_like(place.text, new)
            if like and like.by_spelling >= _MISSPELT:
                change = substitute(place.text, new, place.text[like.start : like.end])
                if change:
                    return Correction(place, change, change.old, "likeness")
    return None


def _first(places: Iterable[Place], value: str, *, old: str = "") -> Correction | None:
    """The first piece in which the old value stands, or else one of the new one's kind."""
    for place in places:
        if change := substitute(place.text, value, old):
            return Correction(place, change, change.old, "the old value" if old else "a value of its kind")
    return None


def _most_like(places: Iterable[Place], new: str) -> Correction | None:
    """The first piece with words that are like the new value."""
    for place in places:
        like = place_like(place.text, new)
        change = substitute(place.text, new, place.text[like.start : like.end]) if like else None
        if change:
            return Correction(place, change, change.old, "likeness")
    return None


def _denied_member(meant: Place, message: str) -> Correction | None:
    """A list, or an item of one, of which the message denies a member: that one is left out."""
    for clause in re.split(r"[,，.。;；!！?？]", message):
        for found in _DENIED.finditer(clause):
            for words in filter(None, ((found["after"] or "").strip(), (found["before"] or "").strip())):
                is_item = isinstance(meant.of, CoreItem) and meant.of.text.casefold() == words.casefold()
                if is_item and _NO_LONGER.search(clause):  # “not in London this week” takes nothing back
                    return Correction(meant, None, words, "a denial")
                if change := substitute(meant.text, "", words):
                    return Correction(meant, change, change.old, "a denial")
    return None
