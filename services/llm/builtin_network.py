"""The network of the built-in encoder: from the tokens of texts to their vectors."""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WINDOWS = ((2, 0), (3, 1), (5, 2))
"""Window of each branch of the network: its tokens, and how many of them stand before its own."""
_BESIDE = 2
"""How many tokens on either side a window covers; beyond the ends of the text it covers padding."""
_TOKENS = 2_048
"""How many tokens have the results of the first layers cached; all of them take 27 MB."""

_AT_ONCE = 384
"""Tokens after which a batch is full; more are no faster."""

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Places = NDArray[np.intp]


class Network:
    """The package's network, in which the first layers process each token once, whatever its neighbours are.

    These layers make three fifths of the products, and texts repeat most of their tokens, so the results for
    recent tokens are kept.
    """

    def __init__(self, backend: Any, tokenize: Callable[..., list[int]]) -> None:
        """Take the package's weights, and its function that returns the numbers of a text's tokens."""
        self._weights = backend
        self._tokenize = partial(tokenize, out_type=int, add_bos=True, add_eos=True)
        self._width = backend.proj_W.shape[1] // len(_WINDOWS)
        # The products of a token for each of its places in a window, beside one another
        self._first = [np.hstack(np.split(matrix, len(matrix) // self._width)) for matrix in backend.w1]
        del backend.w1
        self._place_of = np.zeros(len(backend.table) + 1, dtype=np.intp)
        """Column of `_kept` that each token has; 0 = not cached."""
        self._tokens = np.full(_TOKENS + 1, len(backend.table), dtype=np.intp)
        """The token at each place; at first none."""
        self._used = np.zeros(_TOKENS + 1, dtype=np.intp)
        """Number of the batch that used the token at each place last."""
        self._batches = 0
        rows = sum(1 + length for length, _ in _WINDOWS)
        self._kept = np.zeros((rows, _TOKENS + 1, self._width), dtype=np.float32)
        """For each branch and each place in its window, the product with every cached token. The first column
        stands for no token."""
        self._alone = Lock()

    def sums(self, sentences: Sequence[str]) -> list[Matrix]:
        """Return the sums over the tokens of each sentence, from which `vectors` makes vectors."""
        found: list[Matrix] = []
        some: list[list[int]] = []
        for sentence in sentences:
            some.append(self._tokenize(sentence))
            if sum(map(len, some)) >= _AT_ONCE:
                found.extend(self._sums(some))
                some = []
        found.extend(self._sums(some) if some else ())
        return found

    def vectors(self, texts: Sequence[Sequence[Matrix]]) -> Matrix:
        """Return the vectors (rows, of length 1) of texts from the sums of their sentences.

        For a text of one sentence it equals the package's vector. For several it is nearly equal, because only
        tokens at the borders of sentences have other neighbours.
        """
        sums = np.stack([text[0][0] + text[-1][2] + sum(sentence[1] for sentence in text) for text in texts])
        weights = self._weights
        mean = sums[:, :-1] / np.sqrt(sums[:, -1:])
        once = np.maximum(mean @ weights.p1 + np.maximum(mean @ weights.d0, 0) @ weights.d1, 0)
        found: Matrix = np.tanh(once @ weights.p3 + np.maximum(once @ weights.d2, 0) @ weights.d3)
        found /= np.sqrt(np.einsum("ij,ij->i", found, found).clip(weights.eps))[:, np.newaxis]
        return found

    def _sums(self, texts: Sequence[Sequence[int]]) -> Matrix:
        """Return for each text three sums: over the tokens at its beginning, those within, and those at its end.
        The number of tokens stands behind each sum."""
        tokens: list[int] = []
        gaps: list[int] = []
        thirds: list[slice] = []
        for text in texts:
            if tokens:
                gaps += range(len(tokens), len(tokens) + _BESIDE)
                tokens += [0] * _BESIDE
            begin, end = len(tokens), len(tokens) + len(text)
            thirds += [slice(begin, begin + 1), slice(begin + 1, end - 1), slice(end - 1, end)]
            tokens += text
        with self._alone:
            features = self._features(np.array(tokens), np.array(gaps, dtype=np.intp))
        averages = features.sum(axis=1) / features.shape[1]
        squares = np.einsum("ij,ij->i", features, features) / features.shape[1]
        scales = 1 / np.sqrt(squares - averages * averages + self._weights.eps)
        averages *= scales
        sums = np.stack([scales[part] @ features[part] - averages[part].sum() for part in thirds])
        lengths = np.array([[part.stop - part.start] for part in thirds], dtype=np.float32)
        weights = self._weights
        projected = (sums * weights.ln_g + lengths * weights.ln_b) @ weights.cnn_W + lengths * weights.cnn_b
        return np.hstack([projected, lengths]).reshape(len(texts), 3, -1)

    def _features(self, tokens: NDArray[np.int64], between: Places) -> Matrix:
        """Return for each token its embedding and the outputs of its windows. Places `between` texts hold no
        token."""
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
        """Return the places at which tokens are cached; new tokens replace those used longest ago. There are more
        places than different tokens in a batch."""
        self._batches += 1
        found = self._place_of[tokens]
        self._used[found] = self._batches
        if len(new := np.unique(tokens[found == 0])):
            places = 1 + np.argsort(self._used[1:], kind="stable")[: len(new)]
            self._place_of[self._tokens[places]] = 0
            self._tokens[places], self._place_of[new], self._used[places] = new, places, self._batches
            self._make(new, places)
            found = self._place_of[tokens]
        return found

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
