"""What is learned of the built-in encoder: what a message is like, and what bears on it.

An encoder puts a message beside what sounds like it, a question beside questions. Somebody who asks where to eat
does not say that they eat no meat: `matching`, which `training/matching.py` learned, turns a message towards what
bears on it. Linear heads (`training/heads.py`) tell a message that leaves a choice from others, one that needs
nothing of memory from one that may, and a question that documents answer from small talk with the same words.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Head:
    """A logistic regression over embeddings of length 1.

    Attributes:
        direction: Of length 1.
        scale: Of the cosine with the direction.
        constant: Added to it.
    """

    direction: NDArray[np.float32]
    scale: float
    constant: float

    def logit(self, vector: Sequence[float] | NDArray[np.float32]) -> float:
        """Return the logit for an embedding."""
        found = np.asarray(vector, dtype=np.float32)
        cosine = float(found @ self.direction) / max(math.sqrt(found @ found), 1e-9)
        return self.scale * cosine + self.constant


class MessageKind(NamedTuple):
    """What a message is like: probabilities; without heads no choice, and even odds that it needs nothing.

    Attributes:
        choice: It leaves a choice on which a preference may bear.
        nothing: It needs nothing of memory: a greeting, a task, a question about the world.
    """

    choice: float = 0.0
    nothing: float = 0.5


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads for one encoder.

    Attributes:
        leaves_choice: A message leaves a choice on which a preference may bear.
        needs_nothing: A message needs nothing of memory.
        asks_documents: A message asks what the documents of an organisation would answer.
        matching: Turns the embedding of a message towards those of what bears on it: two matrices, whose product
            is added.
    """

    leaves_choice: Head
    needs_nothing: Head
    asks_documents: Head
    matching: NDArray[np.float32]

    def turned(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return embeddings of messages (rows) turned towards those of what bears on them, of length 1."""
        into, out = self.matching
        found: NDArray[np.float32] = vectors + vectors @ into.T @ out
        found /= np.maximum(np.sqrt(np.einsum("ij,ij->i", found, found)), 1e-9)[:, np.newaxis]
        return found

    def kind_of(self, vector: Sequence[float]) -> MessageKind:
        """Return what the message with this embedding is like."""
        heads = (self.leaves_choice, self.needs_nothing)
        return MessageKind(*(1 / (1 + math.exp(-head.logit(vector))) for head in heads))

    @classmethod
    @cache
    def of(cls, encoder: str) -> "Heads | None":
        """Return the heads for an encoder by its name; None if none were learned with it."""
        stored = json.loads((files(__package__) / "heads.json").read_text(encoding="utf-8"))
        if stored.pop("encoder") != encoder:
            return None
        with (files(__package__) / "matching.npy").open("rb") as file:
            matching = np.load(file).astype(np.float32)
        return cls(matching=matching, **{name: _head(head) for name, head in stored.items()})


def _head(stored: Mapping[str, Sequence[float]]) -> Head:
    weights = np.array(stored["weights"], dtype=np.float32)
    scale = float(np.linalg.norm(weights))
    return Head(weights / scale, scale, float(stored["constant"][0]))
