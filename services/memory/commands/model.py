"""The learned recogniser of memory commands: two linear models over features of a text, about a millisecond.

One tells what a message asks memory for, the other which of its words name what is meant, and what holds instead.
Both are softmax regressions over hashed features; `benchmarks.command_training` makes their weights.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from services.memory.commands.features import Token, features_of_text, features_of_token, hashed
from state.memory import MemoryChangeKind

Part = Literal["other", "target", "replacement"]

NONE = "none"
KINDS: tuple[str, ...] = (NONE, *get_args(MemoryChangeKind))
PARTS: tuple[Part, ...] = get_args(Part)
SCALE = 8.0
_FEW = 20
"""Features that a text has at least, so that of a short one each does not count too much."""
_FILE = "model.npz"

_OF_ONE_WORD = 0.5
"""Probability from which on a single word asks for something."""


@dataclass(frozen=True)
class Opinion:
    """What a text asks memory for."""

    kind: MemoryChangeKind
    """The likeliest kind of command, likely or not."""
    probability: float
    """That it is a command of any kind."""

    def to_review(self, found: Sequence[Token]) -> float:
        """Return the probability that a text asks for a change; 0 for a single word that hardly can."""
        words = sum(not token.is_mark for token in found)
        return self.probability if words > 1 or self.probability >= _OF_ONE_WORD else 0.0


def opinion_on(found: Sequence[Token]) -> Opinion:
    """What a text asks memory for, by the learned weights."""
    model = _model()
    places = np.unique(np.array(hashed(features_of_text(found), len(model.kinds)), dtype=np.int64))
    scores = value_of(len(places)) * model.kinds[places].sum(axis=0, dtype=np.float64)
    shares = softmax(scores * model.kind_scale + model.kind_bias)
    kind = KINDS[1 + int(shares[1:].argmax())]
    return Opinion(cast(MemoryChangeKind, kind), 1.0 - float(shares[0]))


def parts_of(found: Sequence[Token], kind: str) -> list[Part]:
    """For each token of a command what it is part of: the likeliest sequence (Viterbi, 1967)."""
    model = _model()
    if not found:
        return []
    rows = [hashed(features_of_token(found, at, kind), len(model.parts)) for at in range(len(found))]
    scores = np.stack([model.parts[row].sum(axis=0, dtype=np.float64) for row in rows])
    local = np.log(softmax(scores * model.part_scale + model.part_bias) + 1e-9)
    best, origins = local[0], []
    for row in local[1:]:
        reached = best[:, np.newaxis] + model.part_follows
        origins.append(reached.argmax(axis=0))
        best = reached.max(axis=0) + row
    path = [int(best.argmax())]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return [PARTS[each] for each in reversed(path)]


def value_of(features: int) -> float:
    """Weight of each feature of a text with this many."""
    return SCALE / float(np.sqrt(features + _FEW))


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of scores, along the last axis."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return cast(NDArray[np.float64], shifted / shifted.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class CommandWeights:
    """The weights of both models: whole numbers of eight bits, a factor for all, and a bias for each class."""

    kinds: NDArray[np.int8]
    kind_scale: float
    kind_bias: NDArray[np.float64]
    parts: NDArray[np.int8]
    part_scale: float
    part_bias: NDArray[np.float64]
    part_follows: NDArray[np.float64]
    """How much likelier than by itself each part is after each other one, as a logarithm."""

    def save(self, path: Path) -> None:
        """Write them, compressed, with the same bytes each time."""
        np.savez_compressed(path, **cast(Any, vars(self)))

    @classmethod
    def load(cls, path: Path) -> "CommandWeights":
        """Read them.

        Raises:
            OSError: the file cannot be read.
        """
        with np.load(path, allow_pickle=False) as found:
            return cls(
                found["kinds"],
                float(found["kind_scale"]),
                found["kind_bias"],
                found["parts"],
                float(found["part_scale"]),
                found["part_bias"],
                found["part_follows"],
            )


_other: ContextVar[CommandWeights | None] = ContextVar("command_weights", default=None)


@contextmanager
def reading_by(weights: CommandWeights) -> Iterator[None]:
    """Read messages by other weights than those of the package, as training does."""
    token = _other.set(weights)
    try:
        yield
    finally:
        _other.reset(token)


def _model() -> CommandWeights:
    return _other.get() or _own()


@cache
def _own() -> CommandWeights:
    with as_file(files("services.memory.commands") / _FILE) as path:
        return CommandWeights.load(path)
