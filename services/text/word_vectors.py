"""Word vectors: similarity of words that the table of concepts does not cover.

The vectors (`word_vectors.npz`, see `word_vectors.md` for their source and licence) are those of some 40,000 stems
of English and words of Chinese in one space, 4 bits a number.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class WordVectors:
    """Rows of unit length, and the information of each word."""

    def __init__(self, words: Sequence[str], table: NDArray[np.uint8], weights: NDArray[np.uint8]) -> None:
        """Take the words, as `services.text.tokenizer` gives them, a row for each, and their weights (0..255).

        A byte of a row is two numbers, the first in the higher four bits; 8 stands for zero.
        """
        self._rows = {word: row for row, word in enumerate(words)}
        self._table = (np.stack([table >> 4, table & 15], axis=2).astype(np.int8) - 8).reshape(len(table), -1)
        self._weights: Vectors = (weights / np.float32(255)).astype(np.float32)
        of_bytes = np.square(np.arange(16, dtype=np.float32) - 8)
        lengths = np.sqrt((of_bytes[table >> 4] + of_bytes[table & 15]).sum(axis=1))
        self._scales = (1 / np.maximum(lengths, 1)).astype(np.float32)

    def rows(self, terms: Sequence[str]) -> NDArray[np.intp]:
        """The row of each term; -1 if unknown."""
        return np.fromiter(map(self._rows.get, terms, repeat(-1)), np.intp, len(terms))

    def at(self, rows: NDArray[np.intp]) -> Vectors:
        """The vectors of known rows, each of length 1."""
        found: Vectors = self._table[rows] * self._scales[rows, np.newaxis]
        return found

    def weights_at(self, rows: NDArray[np.intp]) -> Vectors:
        """Information of the words of known rows, 0 to 1: low for words in most texts."""
        found: Vectors = self._weights[rows]
        return found


@cache
def word_vectors() -> WordVectors:
    """The vectors of the package; loading takes some 30 ms."""
    with (files("services.text") / "word_vectors.npz").open("rb") as file:
        stored = np.load(file)
        words = stored["words"].tobytes().decode("utf-8").split("\n")
        return WordVectors(words, stored["table"], stored["weights"])
