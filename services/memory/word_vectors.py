"""Vectors of words: how near two words are in meaning, where the table of concepts knows nothing of them.

The vectors (`word_vectors.npz`, see `word_vectors.md` for their source and licence) are those of some 40,000 stems
of English and words of Chinese in one space, 4 bits a number.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_ZEROS = 0x88


class WordVectors:
    """Rows of unit length, and how much each word says."""

    def __init__(self, words: Sequence[str], table: NDArray[np.uint8], weights: NDArray[np.uint8]) -> None:
        """Take the words, as `services.memory.terms` gives them, a row for each, and their weights (0..255).

        A byte of a row is two numbers, the first in the higher four bits; 8 stands for zero.
        """
        self._rows = {word: row for row, word in enumerate(words)}
        self._table = np.concatenate([table, np.full((1, table.shape[1]), _ZEROS, dtype=np.uint8)])
        self._weights = np.append(weights, 0)

    def of(self, terms: Sequence[str]) -> Vectors:
        """A vector of length 1 for each term; of zeros for one that is not known."""
        packed = self._table[self._places(terms)]
        found = np.stack([packed >> 4, packed & 15], axis=2).reshape(len(terms), -1).astype(np.float32) - 8
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        found /= np.maximum(norms, 1.0)
        return found

    def weights(self, terms: Sequence[str]) -> Vectors:
        """How much each term says (0..1): little for one that is in most texts."""
        return (self._weights[self._places(terms)] / 255).astype(np.float32)

    def _places(self, terms: Sequence[str]) -> NDArray[np.intp]:
        rows = self._rows
        return np.fromiter((rows.get(term, -1) for term in terms), np.intp, len(terms))


@cache
def word_vectors() -> WordVectors:
    """The vectors of the package; loading takes some 30 ms."""
    with (files("services.memory") / "word_vectors.npz").open("rb") as file:
        stored = np.load(file)
        words = stored["words"].tobytes().decode("utf-8").split("\n")
        return WordVectors(words, stored["table"], stored["weights"])
