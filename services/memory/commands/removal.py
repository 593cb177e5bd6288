"""What goes with a piece of a text that is forgotten, and what is left of the text. Pure.

“He lives in Leith” goes with “My ex is called Graham”, and “we have two cats” stays. Each of the other pieces
has a learned probability (a logistic regression over its likeness to the piece that goes and its place beside it);
`python -m benchmarks.target_training` learns the weights.
"""

import re
from collections.abc import Sequence, Set

import numpy as np

from services.memory.commands.members import without_named
from services.memory.commands.piece_index import Held, PieceIndex, Values
from services.memory.commands.pieces import pieces
from services.memory.commands.targets import Sought, met_by, weights
from services.text.concepts import concepts, facets
from services.text.language import language_of
from services.text.mentions import (
    AMOUNTS,
    Subject,
    is_of_speaker,
    refers_back,
    stands_alone,
    statements_of,
    without,
    worth_keeping,
)
from services.text.tokenizer import informative_terms

_ENDS = " ,.;!?，。；！？"
_AMOUNT = re.compile(r"[\d一二三四五六七八九十百千万]")
_COUNTS = frozenset(("measure", "number"))
_GOES = 0.75
"""Probability from which on a piece goes; chosen on sets that were left out of the training."""


def going_with(text: str, gone: Set[int], sought: Sought) -> frozenset[int]:
    """The numbers of the pieces of a text that go: those given, and those that only go on about them."""
    parts = pieces(text)
    others = [at for at in range(len(parts)) if at not in gone]
    if not others or not gone:
        return frozenset(gone)
    columns, learned = beside(parts, gone, sought), weights()["beside"]
    scores = sum(learned["pieces"][name] * values for name, values in columns.items())
    shares = 1 / (1 + np.exp(learned["situation"]["always"] - scores))
    going = {*gone, *(at for at in others if shares[at] >= _GOES)}
    for at in others:
        if at - 1 in going and _says_nothing_without(
            parts[at], parts[at - 1], is_detail=bool(columns["detail"][0])
        ):
            going.add(at)
    return frozenset(going)


def beside(parts: Sequence[str], gone: Set[int], sought: Sought) -> dict[str, Values]:
    """For each piece of a text what tells whether it goes with those that are gone."""
    index = PieceIndex(Held(parts, np.arange(len(parts)), np.zeros(len(parts), dtype=bool)))
    named = met_by(sought.named or sought.about, index)
    table = {f"named {name}": named[name] for name in ("words", "concepts", "meaning", "met")}
    table["stays"] = met_by(sought.stays, index)["met"]
    nearest = [min((abs(each - at), each) for each in gone)[1] for at in range(len(parts))]
    rows = np.concatenate([index.contents[at].rows for at in sorted(gone)])
    table["like what goes"] = index.explained(rows)
    matters = {concept for at in gone for concept in index.contents[at].concepts}
    table["same matter"] = index.flags([float(not matters.isdisjoint(each.concepts)) for each in index.contents])
    alone = index.flags([stands_alone(part) for part in parts])
    together = index.flags([_in_one_sentence(parts, at, other) for at, other in enumerate(nearest)])
    chinese = float(language_of(["".join(parts)]) == "zh")
    words = frozenset().union(*(index.contents[at].terms for at in gone))
    details = float(sum(facet.weight == 1.0 for facet in facets(sought.named)) > 1)
    distance = np.array([at - other for at, other in enumerate(nearest)], dtype=np.float64)
    table |= {
        "next": (distance == 1).astype(np.float64),
        "before": (distance < 0).astype(np.float64),
        "distance": np.log1p(np.abs(distance)),
        "one sentence": together,
        "one sentence, Chinese": together * chinese,
        "subject": alone,
        "subject, one sentence": alone * together,
        "subject, Chinese": alone * chinese,
        "of speaker": index.flags([is_of_speaker(part) for part in parts]),
        "of kin": index.flags([each.of_kin for each in index.contents]),
        "refers back": index.flags([refers_back(part) for part in parts]),
        "refers back, of a detail": index.flags([refers_back(part) for part in parts]) * details,
        "detail": np.full(len(parts), details),
        "Chinese": np.full(len(parts), chinese),
        "tells a matter": index.flags([_tells_of_a_matter(part) for part in parts]),
        "length": index.flags([np.log1p(len(each.terms)) for each in index.contents]),
        "met by what goes": np.full(len(parts), float(named["met"][sorted(gone)].max())),
        "pieces": np.full(len(parts), np.log1p(len(parts))),
        "first": index.flags([float(at == 0) for at in range(len(parts))]),
        "first goes": np.full(len(parts), float(0 in gone)),
        "shares a word": index.flags([not words.isdisjoint(each.terms) for each in index.contents]),
        "amount": index.flags([not _COUNTS.isdisjoint(each.values) for each in index.contents]),
        "length of what goes": np.full(len(parts), np.log1p(min(len(index.contents[at].terms) for at in gone))),
    }
    return table


def without_pieces(text: str, gone: Set[int]) -> str:
    """What is left of a text without the pieces of these numbers; empty where nothing worth keeping is."""
    parts = pieces(text)
    left = [part for number, part in enumerate(parts) if number not in gone]
    return worth_keeping("".join(left) + text[sum(map(len, parts)) :])


def without_subject(text: str, subject: Subject, sought: Sought) -> str | None:
    """A text without what speaks of a subject, and what only goes on about that; None where nothing does."""
    rest = without(text, subject)
    if rest is not None and (shortened := without_named(text, f"{sought.named} {sought.about}", sought.stays)):
        return shortened.text
    if not rest:
        return rest
    gone = {number for number, part in enumerate(pieces(text)) if part.strip(_ENDS) not in rest}
    if without_pieces(text, gone) != rest:
        return rest  # of a piece only some words go
    return without_pieces(text, going_with(text, gone, sought))


def taken_out(text: str, rest: str) -> str:
    """What was taken out of the first statement of a text that is not whole any more."""
    statement = next((part for part in statements_of(text) if part.strip() not in rest), text)
    gone = "".join(part for part in pieces(statement) if part.strip(_ENDS) not in rest)
    return gone or statement


def without_value(text: str, old: str, new: str) -> str:
    """What is left of a correction without the value that holds no more.

    Of a piece that also has the new value only the words of the old one go.
    """
    left = []
    for part in pieces(text):
        if old.casefold() not in part.casefold():
            left.append(part)
        elif new and new.casefold() in part.casefold():
            left.append(re.sub(rf"(?:\b(?:the|my|a|an|our) )?{re.escape(old)}\s*", "", part, flags=re.IGNORECASE))
    return "".join(left)


def _says_nothing_without(part: str, before: str, *, is_detail: bool) -> bool:
    """Whether of whom or of what a piece speaks is gone with the one before it."""
    if refers_back(part):
        return not is_detail
    return not part.isascii() and not _ends_sentence(before) and not _tells_of_a_matter(part)


def _in_one_sentence(parts: Sequence[str], at: int, other: int) -> bool:
    between = parts[min(at, other) : max(at, other)]
    return not any(map(_ends_sentence, between))


def _ends_sentence(part: str) -> bool:
    return part.rstrip().endswith((".", "!", "?", "。", "！", "？", ";", "；", "…", "\n"))


def _tells_of_a_matter(clause: str) -> bool:
    """Whether a clause tells something by itself, and not only an amount or a day."""
    if not concepts(clause).keys() <= AMOUNTS:
        return True
    return any(not _AMOUNT.search(term) for term in informative_terms(clause))
