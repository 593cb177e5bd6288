"""An embedder without a model: hashed words and character n-grams."""

import zlib
from collections import Counter
from typing import cast

import numpy as np
from langchain_core.embeddings import Embeddings

from services.text.lexical import words

_NGRAM = 3


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
        """A vector for each text."""
        return [self.embed_query(text) for text in texts]

    @staticmethod
    def _features(text: str) -> list[str]:
        features = []
        for word in words(text):
            features.append(word)
            if word[0].isascii() and len(word) > _NGRAM:
                edged = f"<{word}>"
                features.extend(edged[i : i + _NGRAM] for i in range(len(edged) - _NGRAM + 1))
            elif not word[0].isascii():
                features.extend(word)
        return features
