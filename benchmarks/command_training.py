"""Training of the recogniser of memory commands.

`python -m benchmarks.command_training` writes `services/memory/commands/model.npz`, with the same bytes each time.
`--across [WRITER …]` writes nothing: it trains without each writer in turn and prints how that writer is read.

Lines of `data/memory_commands/training/LANGUAGE-WRITER.jsonl` are `{text, before, kind, target, replacement}`; the
frames in `data/memory_commands/frames`, the benchmark's own sets and the users' messages of the everyday facts,
which ask memory for nothing, are added.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_frames import filled
from services.memory.commands.features import Token, features_of_text, features_of_token, hashed, tokens
from services.memory.commands.model import (
    KINDS,
    NONE,
    PARTS,
    CommandWeights,
    softmax,
    value_of,
)
from services.memory.commands.text import folded, masked

_HERE = Path(__file__).parent
_DATA = _HERE / "data"
SETS = ("dev", "others", *(f"others-{number}" for number in range(2, 11)), "targets", "targets-2")
_WEIGHTS = _HERE.parent / "services" / "memory" / "commands" / "model.npz"
_KIND_PLACES = 1 << 16
_PART_PLACES = 1 << 15
_PASSES = 12
_BATCHES = 40
_LEARNING_RATE = 0.01
_LARGEST = 127
_SEED = 35
_TOGETHER = 1500
_SHARE_BESIDE = 0.5
_LONGEST_BESIDE = 200
_KIND_DECAY = 1e-4
_PART_DECAY = 1e-4
_COMMANDS_WEIGH = 2.0
"""A command against an ordinary message, of which the sets hold more."""

Values = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Message:
    """A message of which it is known what it asks memory for."""

    text: str
    kind: str
    writer: str
    target: str = ""
    replacement: str = ""
    told: bool = False
    """Whether it is known which words are the target and the replacement."""

    def tokens(self) -> list[Token]:
        """As the recogniser reads it."""
        return _tokens(self.text)


@dataclass(frozen=True)
class _Sparse:
    """Rows of features, each of the same value."""

    starts: Places
    places: Places
    rows: Places
    values: Values
    width: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int] | Places], width: int, *, normalised: bool) -> "_Sparse":
        sizes = np.array([len(row) for row in rows])
        counts = [value_of(int(size)) if normalised else 1.0 for size in sizes]
        return cls(
            np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
            np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]),
            np.repeat(np.arange(len(rows)), sizes),
            np.repeat(np.array(counts), sizes),
            width,
        )

    def batches(self, number: int) -> Iterator[tuple[Places, "_Sparse"]]:
        """The rows in this many parts, each drawn at random, with their numbers."""
        stops = np.append(self.starts[1:], len(self.places))
        for part in np.array_split(np.random.default_rng(_SEED).permutation(len(self.starts)), number):
            sizes = (stops - self.starts)[part]
            at = np.concatenate([np.arange(self.starts[row], stops[row]) for row in part])
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
            rows = np.repeat(np.arange(len(part)), sizes)
            yield part, _Sparse(starts, self.places[at], rows, self.values[at], self.width)

    def times(self, weights: Values) -> Values:
        products = weights[self.places] * self.values[:, np.newaxis]
        return cast(Values, np.add.reduceat(products, self.starts, axis=0))

    def transposed_times(self, errors: Values) -> Values:
        spread = errors[self.rows] * self.values[:, np.newaxis]
        columns = [np.bincount(self.places, column, minlength=self.width) for column in spread.T]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class _Fitted:
    weights: Values
    bias: Values

    def rounded(self) -> tuple[NDArray[np.int8], float]:
        scale = float(np.abs(self.weights).max()) / _LARGEST
        return np.round(self.weights / scale).astype(np.int8), scale


def _fit(features: _Sparse, labels: Places, classes: int, decay: float, importance: Values) -> _Fitted:
    """Softmax regression by Adam over batches (Kingma and Ba, 2015), with weight decay and a falling rate."""
    wanted, shares = np.eye(classes)[labels], importance / importance.mean()
    batches = list(features.batches(_BATCHES))
    parameters = [np.zeros((features.width, classes)), np.zeros((1, classes))]
    means = [np.zeros_like(each) for each in parameters]
    squares = [np.zeros_like(each) for each in parameters]
    steps = _PASSES * _BATCHES
    for step in range(1, steps + 1):
        part, rows = batches[step % _BATCHES]
        weights, bias = parameters
        errors = (softmax(rows.times(weights) + bias) - wanted[part]) * shares[part, np.newaxis] / len(part)
        gradients = [rows.transposed_times(errors) + decay * weights, errors.sum(axis=0, keepdims=True)]
        rate = _LEARNING_RATE * (1 - step / (steps + 1)) / (1 - 0.9**step)
        for place, gradient in enumerate(gradients):
            means[place] = 0.9 * means[place] + 0.1 * gradient
            squares[place] = 0.99 * squares[place] + 0.01 * gradient**2
            step_size = np.sqrt(squares[place] / (1 - 0.99**step)) + 1e-6
            parameters[place] = parameters[place] - rate * means[place] / step_size
    return _Fitted(parameters[0], parameters[1][0])


def written() -> list[Message]:
    """What was written for training, and the frames with their places filled."""
    frames = [
        Message(each.text, each.kind, f"{language}-frames", each.target, each.replacement, told=True)
        for language in ("en", "zh")
        for each in filled(language)
    ]
    return frames + [
        Message(line["text"], line["kind"], path.stem, line["target"], line["replacement"], told=True)
        for path in sorted((_DATA / "memory_commands" / "training").glob("*.jsonl"))
        for line in _lines(path)
    ]


def sets(names: Iterable[str]) -> list[Message]:
    """The sets of the benchmark."""
    found = []
    for name in names:
        folder = _DATA / "memory_commands" / name
        for language in ("en", "zh"):
            writer = f"{language}-{name}"
            found += [
                Message(line["message"], line["expect"], writer) for line in _lines(folder / f"{language}.jsonl")
            ]
            path = folder / f"ordinary_{language}.jsonl"
            texts = (
                [line["message"] for line in _lines(path)] if path.exists() else _rows(path.with_suffix(".txt"))
            )
            found += [Message(text, NONE, writer) for text in texts]
    return found


def ordinary_of(folder: Path, language: str) -> list[str]:
    """The ordinary messages of a set, in one of its two forms."""
    path = folder / f"ordinary_{language}.jsonl"
    if path.exists():
        return [line["message"] for line in _lines(path)]
    return _rows(path.with_suffix(".txt"))


def ordinary(*, without: str = "") -> list[Message]:
    """What asks memory for nothing: everyday statements, questions, feelings and courtesies."""
    found: dict[str, str] = {}
    for path in sorted(_DATA.glob("everyday/**/*.jsonl")):
        for line in _lines(path):
            if line.get("role", "user") == "user" and line.get("category") != "assistant":
                # What replaces something told before asks memory for it.
                keys = ("text", "question", "told", "near", "also")
                kept = [key for key in keys if key != "told" or line.get("category") != "updated"]
                texts = [line[key] for key in kept if line.get(key)]
                found |= dict.fromkeys(texts, "zh" if "zh" in path.as_posix().split("everyday")[1] else "en")
    for path in (
        path for name in SETS if name != without for path in sorted(_DATA.glob(f"memory_commands/{name}/*.jsonl"))
    ):
        for line in _lines(path):
            told = [each["text"] for each in line.get("setup", ()) if each["role"] == "user"]
            found |= dict.fromkeys(told, "zh" if path.stem.endswith("zh") else "en")
    for language in ("en", "zh"):
        for line in _lines(_HERE / "time_sentences" / f"{language}.jsonl"):
            found[line["text"]] = language
        for path in sorted((_HERE / "tone_sentences").glob(f"{language}*.tsv")):
            found |= dict.fromkeys((row.partition("\t")[2] for row in _rows(path)), language)
        path = _DATA / "memory_commands" / "training" / f"ordinary_{language}.txt"
        found |= dict.fromkeys(_rows(path), language)
    return [Message(text, NONE, f"{language}-ordinary") for text, language in found.items() if text.strip()]


def among_others(messages: Sequence[Message]) -> list[Message]:
    """Commands with an ordinary sentence beside them, and ordinary sentences together, drawn by a fixed seed.

    Most messages of the sets are one or two sentences long, and those of users are not.
    """
    drawn = random.Random(_SEED)
    found = []
    for language in ("en", "zh"):
        own = [each for each in messages if each.writer.startswith(language)]
        plain = [each.text for each in own if each.kind == NONE and len(each.text) < _LONGEST_BESIDE]
        for _ in range(_TOGETHER):
            texts = drawn.sample(plain, drawn.randint(2, 4))
            found.append(Message(_joined(texts, language), NONE, f"{language}-together"))
        for each in own:
            if each.kind != NONE and drawn.random() < _SHARE_BESIDE:
                texts = [each.text, drawn.choice(plain)]
                drawn.shuffle(texts)
                found.append(replace(each, text=_joined(texts, language)))
    return found


def _joined(texts: Sequence[str], language: str) -> str:
    mark, space = ("。", "") if language == "zh" else (".", " ")
    return space.join(text if re.search(r"[.!?。！？…~]\s*$", text) else f"{text}{mark}" for text in texts)


def _rows(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def fit_kinds(messages: Sequence[Message]) -> _Fitted:
    """Which kind of command each message is."""
    features = _Sparse.of([_features(each.text) for each in messages], _KIND_PLACES, normalised=True)
    labels = np.array([KINDS.index(message.kind) for message in messages])
    importance = np.where(labels > 0, _COMMANDS_WEIGH, 1.0)
    return _fit(features, labels, len(KINDS), _KIND_DECAY, importance)


@cache
def _tokens(text: str) -> list[Token]:
    return tokens(masked(folded(text)))


@cache
def _features(text: str) -> Places:
    return np.unique(np.array(hashed(features_of_text(_tokens(text)), _KIND_PLACES), dtype=np.int64))


def fit_parts(messages: Sequence[Message]) -> tuple[_Fitted, Values]:
    """Which part each token of a command is, and how the parts follow one another."""
    rows: list[list[int]] = []
    labels: list[int] = []
    follows = np.ones((len(PARTS), len(PARTS)))
    for message in messages:
        if message.told and message.kind != NONE:
            found = message.tokens()
            own = _labels(message, found)
            np.add.at(follows, (own[:-1], own[1:]), 1)
            labels += own
            rows += [hashed(features_of_token(found, at, message.kind), _PART_PLACES) for at in range(len(found))]
    features = _Sparse.of(rows, _PART_PLACES, normalised=False)
    fitted = _fit(features, np.array(labels), len(PARTS), _PART_DECAY, np.ones(len(rows)))
    shares = follows.sum(axis=0) / follows.sum()
    return fitted, np.log(follows / follows.sum(axis=1, keepdims=True) / shares)


def _labels(message: Message, found: Sequence[Token]) -> list[int]:
    text = folded(message.text).lower()
    labels = [0] * len(found)
    for part in ("target", "replacement"):
        words = folded(getattr(message, part)).lower().strip()
        place = text.find(words) if words else -1
        for at, token in enumerate(found):
            if place >= 0 and place <= token.start and token.end <= place + len(words):
                labels[at] = PARTS.index(part)
    return labels


def weights_of(messages: Sequence[Message]) -> CommandWeights:
    """Train both models."""
    together = [*messages, *among_others(messages)]
    kinds, (parts, follows) = fit_kinds(together), fit_parts(together)
    kind_weights, kind_scale = kinds.rounded()
    part_weights, part_scale = parts.rounded()
    return CommandWeights(kind_weights, kind_scale, kinds.bias, part_weights, part_scale, parts.bias, follows)


def weights_without(name: str) -> CommandWeights:
    """Weights that have not seen a set."""
    return weights_of([*written(), *sets(each for each in SETS if each != name), *ordinary(without=name)])


def _across(everything: Sequence[Message], writers: Sequence[str]) -> None:
    known = sorted({message.writer for message in everything if not message.writer.endswith("ordinary")})
    for writer in writers or known:
        own = [message for message in everything if message.writer == writer]
        others = [message for message in everything if message.writer != writer]
        fitted = fit_kinds([*others, *among_others(others)])
        features = _Sparse.of([_features(each.text) for each in own], _KIND_PLACES, normalised=True)
        print(writer, *_read(own, softmax(features.times(fitted.weights) + fitted.bias)), sep="\t")


def _read(messages: Sequence[Message], shares: Values) -> Iterable[str]:
    likeliest = [KINDS[1 + each] for each in shares[:, 1:].argmax(axis=1)]
    kinds = np.array([message.kind for message in messages])
    commands = kinds != NONE
    for least in (0.4, 0.5, 0.6, 0.75, 0.9):
        said = np.where(1 - shares[:, 0] >= least, likeliest, NONE)
        right, alarms = said[commands] == kinds[commands], said[~commands] != NONE
        yield f"{least}: {right.mean():.3f} of {len(right)}, alarms {alarms.sum()} of {len(alarms)}"


def main() -> None:
    """Train and write the weights, or print how each writer is read by what the others wrote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--across", nargs="*", metavar="WRITER", help="leave out each of these in turn (en-a), and write nothing"
    )
    parser.add_argument("--without", action="append", default=[], help="a set that is left out: others-2")
    options = parser.parse_args()
    everything = [*written(), *sets(name for name in SETS if name not in options.without), *ordinary()]
    if options.across is not None:
        _across(everything, options.across)
        return
    weights_of(everything).save(_WEIGHTS)
    sys.stdout.write(f"{len(everything)} messages, {_WEIGHTS.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
