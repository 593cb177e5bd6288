"""Which piece of memory a command or a piece of news is about: a learned probability for each.

Each piece has a score, and so has the case that none is meant; their softmax is the probability of each (a
conditional logit, as `services.search.likelihood`). `python -m benchmarks.target_training` learns the weights.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from services.memory.commands.features import Token, tokens
from services.memory.commands.piece_index import Held, PieceIndex, Values
from services.memory.commands.pieces import Content, content_of
from services.memory.commands.text import folded, masked
from services.text.clauses import statements
from services.text.concepts import facets
from services.text.language import language_of
from services.text.mentions import is_of_kin, is_of_speaker
from services.text.tokenizer import informative_terms
from services.text.word_vectors import word_vectors
from state.memory import Command

Weights = Mapping[str, Mapping[str, Mapping[str, float]]]
Observed = tuple[dict[str, Values], dict[str, float]]
"""Inputs of the scores: of each piece, and of the situation."""

_SMALLEST_STORE = 50
_NOWHERE = 0.5
"""Factor for a word that no piece has, which may be a name for the matter as well as its subject."""
_NEAR_MEANING = 0.25
"""Cosine of two words from which on they are near."""
_OF_MEMORY = frozenset(("remove", "keep", "memory", "said"))
_MOST_CLAUSES = 4
_CLASSES = (
    *("remove", "keep", "memory", "said", "not", "ask", "you", "me", "this", "just_now", "secret", "wrong"),
    *("change", "always", "answer", "ask_about", "others", "stays"),
)
"""Classes of words (`words.toml`) by which it shows whether any piece is meant."""
_KINDS = ("weekday", "date", "time", "measure", "ordinal", "number", "name", "kin", "colour", "day", "month")


@dataclass(frozen=True)
class Sought:
    """What a message says of the piece that it means."""

    kind: Literal["forget", "change"]
    message: str
    named: str
    """What is to be forgotten, or does not hold any more, in the user's words."""
    about: str
    """What else the message speaks of."""
    new: str = ""
    """What holds instead."""
    probability: float = 0.0
    """That the message is a command of this kind, as the recogniser sees it."""
    plain: float = 0.0
    stays: str = ""
    """What is to be kept."""
    leaves_out: float = 0.0
    """1 where the message reads like a wish to leave something out of memory from the first."""
    tells: float = 0.0
    """1 where it tells something of the user."""
    points_back: float = 0.0
    """1 where it names nothing, and so means what was said before it."""


def likelihood(kind: str, observed: Observed) -> Values:
    """For each piece the probability that it is meant."""
    of_pieces, of_situation = observed
    learned = weights()[kind]
    scores = sum(learned["pieces"][name] * values for name, values in of_pieces.items())
    none = sum(learned["situation"][name] * value for name, value in of_situation.items())
    every = np.append(scores, none)
    raised = np.exp(every - every.max())
    return cast(Values, (raised / raised.sum())[:-1])


_other: ContextVar[Weights | None] = ContextVar("target_weights", default=None)


@contextmanager
def weighing_by(other: Weights) -> Iterator[None]:
    """Rank by other weights than those of the package, as training does."""
    token = _other.set(other)
    try:
        yield
    finally:
        _other.reset(token)


def weights() -> Weights:
    """The learned weights of each model by their names."""
    return _other.get() or _own()


@cache
def _own() -> Weights:
    text = (files("services.memory.commands") / "targets.json").read_text(encoding="utf-8")
    return cast(Weights, json.loads(text))


def observe(sought: Sought, held: Held) -> Observed:
    """What the probabilities follow from; of no pieces only the situation."""
    index = PieceIndex(held)
    situation = _situation(sought)
    table: dict[str, Values] = {}
    groups = {"named": sought.named, "about": sought.about}
    if sought.kind == "change":
        groups["new"] = sought.new
    met_all: Values = np.zeros(index.size)
    table |= _of_clauses(sought, index)
    for name, words in groups.items():
        own = met_by(words, index)
        for column, values in own.items():
            table[f"{name} {column}"] = values
            if column in {"met", "meaning"}:
                table[f"{name} {column} around"] = index.around(values)
        if name != "new":
            met_all = cast(Values, np.maximum(met_all, own["met"]))
    table["met"] = met_all
    if sought.kind == "forget":
        table["stays"] = met_by(sought.stays, index)["met"]
        table["stays more"] = np.maximum(table["stays"] - met_all, 0.0)
    compared = [name for name in table if name.endswith(("met", "meaning", "words"))]
    for name in compared:
        values = table[name]
        best = float(values.max(initial=0.0))
        situation[f"best {name}"] = best
        table[f"{name} of best"] = values / best if best > 0 else np.zeros(index.size)
        table[f"{name} first"] = ((values == best) & (values > 0)).astype(np.float64)
        situation[f"margin {name}"] = _margin(values, index.of)
    query = content_of(sought.message)
    table |= _whose(sought, index)
    table["just before"] = held.just_before.astype(np.float64)
    table["just before, nothing named"] = table["just before"] * situation["names nothing"]
    newest = float(held.of.max(initial=0)) + 1.0
    table["recency"] = ((held.of + 1.0) / newest).astype(np.float64)
    table["length"] = index.flags([np.log1p(len(each.terms)) for each in index.contents])
    table["asks"] = index.flags([each.asks for each in index.contents])
    table["first of text"] = index.flags(list(np.diff(held.of, prepend=-1) > 0))
    if sought.kind == "change":
        table |= _slots(sought, index, query)
        for name in ("same slot", "same kind", "same unit", "repeats"):
            situation[f"best {name}"] = float(table[name].max(initial=0.0))
    situation["store"] = float(np.log1p(index.size) / 5)
    situation["always"] = 1.0
    return table, situation


def met_by(words: str, index: PieceIndex) -> dict[str, Values]:
    """The share of what some words name that each piece meets: by words, by concepts, by meaning, by any."""
    zero = np.zeros(index.size)
    found = {"words": zero, "concepts": zero, "shape": zero, "meaning": zero, "met": zero, "explained": zero}
    named = facets(words)
    if not named or not index.size:
        return found
    totals = {name: np.zeros(index.size) for name in ("words", "concepts", "shape", "meaning", "met")}
    whole = 0.0
    store = max(index.size, _SMALLEST_STORE)
    for facet in named:
        by_terms, by_concepts = index.by_terms(facet), index.by_concepts(facet)
        rows = word_vectors().rows(list(facet.terms))
        near = index.by_meaning(rows[rows >= 0])
        meaning = np.clip((near - _NEAR_MEANING) / (1 - _NEAR_MEANING), 0.0, 1.0)
        shape = index.by_shape(facet)
        met = np.maximum(np.maximum(by_terms, 0.8 * by_concepts), np.maximum(0.8 * meaning, 0.6 * shape))
        count = float((met >= 0.5).sum())  # noqa: PLR2004
        weight = facet.weight * np.log(1 + (store - count + 0.5) / (count + 0.5))
        weight *= 1.0 if met.any() else _NOWHERE
        whole += weight
        for name, values in (
            ("words", by_terms),
            ("concepts", by_concepts),
            ("shape", shape),
            ("meaning", meaning),
            ("met", met),
        ):
            totals[name] += weight * values
    rows = word_vectors().rows(sorted(informative_terms(words)))
    found = {name: values / whole for name, values in totals.items()}
    found["explained"] = index.explained(rows[rows >= 0])
    return found


def _of_clauses(sought: Sought, index: PieceIndex) -> dict[str, Values]:
    """How far each piece meets that clause of the message of which it meets most."""
    clauses = (
        [clause.text for clause in statements(sought.message)]
        if sought.kind == "change"
        else _parts(sought.message)
    )
    found = {f"clause {name}": np.zeros(index.size) for name in ("words", "meaning", "met", "explained")}
    for clause in clauses[:_MOST_CLAUSES]:
        own = met_by(clause, index)
        for name in ("words", "meaning", "met", "explained"):
            found[f"clause {name}"] = np.maximum(found[f"clause {name}"], own[name])
    return found


def _parts(message: str) -> list[str]:
    """The clauses of a message in which something is asked of memory."""
    text = folded(message)
    clauses: list[list[Token]] = [[]]
    for token in tokens(masked(text)):
        if token.is_mark:
            clauses.append([])
        else:
            clauses[-1].append(token)
    asking = [clause for clause in clauses if any(not _OF_MEMORY.isdisjoint(token.classes) for token in clause)]
    return [message[clause[0].start : clause[-1].end] for clause in asking]


def _whose(sought: Sought, index: PieceIndex) -> dict[str, Values]:
    named_kin = is_of_kin(sought.named) or is_of_kin(sought.about)
    of_kin = index.flags([each.of_kin for each in index.contents])
    around = index.around(of_kin)
    speaker = float(is_of_speaker(sought.named) and not named_kin)
    return {
        "of kin": of_kin,
        "of kin as named": of_kin * named_kin,
        "not of kin as named": (1 - around) * named_kin,
        "of kin, not of speaker": of_kin * speaker,
    }


def _slots(sought: Sought, index: PieceIndex, query: Content) -> dict[str, Values]:
    """How far each piece holds another value of the kind of one in the message."""
    kinds = {kind: set(values) for kind, values in query.values.items() if kind in _KINDS}
    if sought.new:
        kinds = {
            kind: set(values) for kind, values in content_of(sought.new).values.items() if kind in _KINDS
        } or kinds
    rows: dict[str, list[float]] = {
        name: [] for name in ("same kind", "same unit", "same number", "same name", "same value")
    }
    for each in index.contents:
        exact = unit = number = name = value = 0.0
        for kind, news in kinds.items():
            olds = set(each.values.get(kind, ()))
            if not olds:
                continue
            if olds & news:
                value = 1.0
            if olds <= news:
                continue
            if kind in {"weekday", "date", "time", "colour", "day", "month", "ordinal"}:
                exact = 1.0
            elif kind == "measure":
                unit = max(unit, float(not _units(olds).isdisjoint(_units(news))))
            elif kind == "number":
                number = 1.0
            else:
                name = 1.0
        for column, flag in zip(rows, (exact, unit, number, name, value), strict=True):
            rows[column].append(flag)
    table = {name: index.flags(values) for name, values in rows.items()}
    shared = np.array([len(each.terms & query.terms) / max(len(each.terms), 1) for each in index.contents])
    table["repeats"] = shared
    slot = np.maximum(np.maximum(table["same kind"], table["same unit"]), 0.5 * table["same number"])
    met = index.around(np.maximum(shared, 0))
    table["same slot"] = slot * np.minimum(1.0, 2 * met)
    changing = _changing_terms(sought.message)
    table["beside a change"] = np.array(
        [float(bool({t for t in each.terms if len(t) > 1} & changing)) for each in index.contents]
    )
    return table


def _units(values: set[str]) -> set[str]:
    return {"".join(character for character in value if not character.isdigit()).strip(" .,:") for value in values}


def _changing_terms(message: str) -> set[str]:
    """Informative words of the clauses in which something is said to change, or not to hold."""
    found: set[str] = set()
    clause: list[str] = []
    changes = False
    text = folded(message)
    for token in [*tokens(masked(text)), None]:
        if token is None or token.is_mark:
            if changes:
                found |= (
                    informative_terms(" ".join(clause))
                    if message.isascii()
                    else informative_terms("".join(clause))
                )
            clause, changes = [], False
            continue
        clause.append(text[token.start : token.end])
        changes = changes or not {"change", "wrong", "not", "remove"}.isdisjoint(token.classes)
    return found


def _situation(sought: Sought) -> dict[str, float]:
    language = language_of([sought.message])
    found = tokens(masked(folded(sought.message)))
    classes = {name for token in found for name in token.classes}
    probability = min(max(sought.probability, 1e-3), 1 - 1e-3)
    return {
        "chinese": float(language == "zh"),
        "certainty": float(np.log(probability / (1 - probability))) / 4,
        "plain": sought.plain,
        "leaves out": sought.leaves_out,
        "tells": sought.tells,
        "points back": sought.points_back,
        "words": float(np.log1p(len(informative_terms(sought.message))) / 2),
        "named words": float(np.log1p(len(informative_terms(sought.named))) / 2),
        "names nothing": float(not informative_terms(sought.named)),
        "no new": float(not sought.new),
        "question": float("?" in sought.message or "？" in sought.message),
        "asks": float(content_of(sought.message).asks),
        **{f"class {name}": float(name in classes) for name in _CLASSES},
    }


def _margin(values: Values, of: NDArray[np.intp]) -> float:
    """How far the best is ahead of the best of another text."""
    if not len(values):
        return 0.0
    best = int(values.argmax())
    return float(values[best] - values[of != of[best]].max(initial=0.0))


def sought_by(command: Command, message: str) -> Sought:
    """What a command to forget or to correct says of its target."""
    return Sought(
        "change" if command.kind == "correct" else "forget",
        message,
        named=command.named or command.target,
        about=command.about,
        new=command.replacement,
        probability=command.probability,
        plain=float(command.certainty == "plain"),
        stays=command.kept,
        leaves_out=float(command.kind == "do_not_remember"),
        tells=float(command.tells),
        points_back=float(command.scope == "previous"),
    )
