"""An embedder without a model: hashed words and character n-grams."""

import re
import unicodedata
import zlib
from collections import Counter
from typing import cast

import numpy as np
from langchain_core.embeddings import Embeddings

_NGRAM = 3
_RUN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u9fff\uf900-\ufaff]+")
_STOP_WORDS = frozenset(
    ["the", "a", "an", "and", "of", "to", "in", "is", "it", "i", "my", "we", "you", "do", "what", "which"]
)


class LexicalEmbeddings(Embeddings):
    """Vectors of hashed words and character n-grams, L2-normalised: no model, no network.

    Similar words share n-grams, so that `travelling` finds `travel`. Feature hashing with signs is
    that of Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009.
    """

    def __init__(self, dimensions: int = 2048) -> None:
        self.dimensions = dimensions

    def embed_query(self, text: str) -> list[float]:
        """One vector; all zeros for a text without a word."""
        vector = np.zeros(self.dimensions, dtype=np.float32)
        for feature, count in Counter(self._features(text)).items():
            digest = zlib.crc32(feature.encode())
            vector[(digest >> 1) % self.dimensions] += (1.0 if digest & 1 else -1.0) * np.log1p(count)
        norm = float(np.linalg.norm(vector))
        return cast("list[float]", (vector / norm if norm else vector).tolist())

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    @staticmethod
    def _features(text: str) -> list[str]:
        features = []
        for word in _words(text):
            features.append(word)
            if word[0].isascii() and len(word) > _NGRAM:
                edged = f"<{word}>"
                features.extend(edged[i : i + _NGRAM] for i in range(len(edged) - _NGRAM + 1))
            elif not word[0].isascii():
                features.extend(word)
        return features


def _words(text: str) -> list[str]:
    """Lower-case words, and for Chinese the pairs of neighbouring characters (a lone character as it is).
    Full-width forms are folded to their usual ones; stop words are left out."""
    found: list[str] = []
    folded = unicodedata.normalize("NFKC", text).lower()
    if folded.isascii():
        return [run for run in _RUN.findall(folded) if run not in _STOP_WORDS]
    for run in _RUN.findall(folded):
        if not run[0].isascii() and len(run) > 1:
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
        elif run not in _STOP_WORDS:
            found.append(run)
    return found
