"""Linear heads over embeddings: what a message is like, beyond what it is about.

Somebody who asks where to eat does not say that they eat no meat. Neither words nor subject tell that the one
bears on the other, but one states a preference and the other leaves a choice. Likewise, a question that documents
answer differs from small talk with the same words. The heads hold for the encoder with which `training/heads.py`
learned them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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

    def logits(self, cosines: Values) -> Values:
        """Return the logit for each cosine of an embedding with the direction."""
        return self.scale * cosines + self.constant

    def logit(self, vector: Sequence[float]) -> float:
        """Return the logit for an embedding."""
        found = np.asarray(vector, dtype=np.float32)
        cosine = float(found @ self.direction) / max(float(np.linalg.norm(found)), 1e-9)
        return self.scale * cosine + self.constant


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads for one encoder.

    Attributes:
        states_preference: What somebody said states what they prefer, want or avoid.
        leaves_choice: A message leaves a choice on which a preference may bear.
        asks_documents: A message asks what the documents of an organisation would answer.
    """

    states_preference: Head
    leaves_choice: Head
    asks_documents: Head

    @classmethod
    @cache
    def of(cls, encoder: str) -> "Heads | None":
        """Return the heads for an encoder by its name; None if none were learned with it."""
        stored = json.loads((files(__package__) / "heads.json").read_text(encoding="utf-8"))
        if stored.pop("encoder") != encoder:
            return None
        return cls(**{name: _head(head) for name, head in stored.items()})


def _head(stored: Mapping[str, Sequence[float]]) -> Head:
    weights = np.array(stored["weights"], dtype=np.float32)
    scale = float(np.linalg.norm(weights))
    return Head(weights / scale, scale, float(stored["constant"][0]))
