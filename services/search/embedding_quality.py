"""Measures how far an embedding can be trusted with a language: once, with sentences of the service."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from services.text.language import Language

PROBES: Mapping[Language, Sequence[Sequence[str]]] = json.loads(
    (files(__package__) / "probes.json").read_text(encoding="utf-8")
)
"""Per language: sentences, each with a paraphrase and with one of the same words but another meaning."""

Vectors = Sequence[Sequence[float]] | NDArray[np.float32] | NDArray[np.float64]

# This much reciprocal rank comes from a common name or word; only what exceeds it is understanding.
_BY_WORDS_ALONE = 0.2
_UNDERSTOOD = 0.75
_SENSELESS = 0.05
# A cosine counts as relevance if at most one in this many unrelated pairs reaches it.
_CHANCE = 0.01
# Even an embedding that understands nothing finds words that are spelt a little differently.
_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class EmbeddingQuality:
    """Result of the probe for one language.

    Attributes:
        quality: How far it understands the language, 0 to 1.
        cosine_floor: From which on two texts are about the same.
    """

    quality: float
    cosine_floor: float


def probe_texts() -> list[str]:
    """The texts whose vectors `measured` takes, in this order."""
    return [text for language in sorted(PROBES) for probe in PROBES[language] for text in probe]


def measured(vectors: Vectors) -> dict[Language, EmbeddingQuality]:
    """Say what an embedding is good for by language, from the vectors of `probe_texts`.

    For each sentence its paraphrase is sought among all paraphrases and misleading sentences of the language. A
    constant or otherwise senseless embedding has quality 0. Raises `ValueError` if the vectors are not one for
    each text, or are not finite.
    """
    table = np.asarray(vectors, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(probe_texts()) or not np.isfinite(table).all():  # noqa: PLR2004
        raise ValueError("An embedding has to give one finite vector for each text.")
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    table = table / np.where(lengths > 0, lengths, 1.0)
    ends = np.cumsum([3 * len(PROBES[language]) for language in sorted(PROBES)])
    return dict(zip(sorted(PROBES), map(_of_language, np.split(table, ends[:-1])), strict=True))


def _of_language(table: NDArray[np.float64]) -> EmbeddingQuality:
    said, same, other = table[0::3], table[1::3], table[2::3]
    similar = said @ np.concatenate([same, other]).T
    own = np.diagonal(similar)
    # If several are equal, the paraphrase counts as the last: a model that cannot tell gets no credit.
    ranks = (similar >= own[:, np.newaxis]).sum(axis=1)
    reciprocal = float((1 / ranks).mean())
    unrelated = (said @ said.T)[~np.eye(len(said), dtype=bool)]
    quality = (reciprocal - _BY_WORDS_ALONE) / (_UNDERSTOOD - _BY_WORDS_ALONE)
    return EmbeddingQuality(
        quality=min(1.0, max(_LEAST if reciprocal > _SENSELESS else 0.0, quality)),
        cosine_floor=float(np.quantile(unrelated, 1 - _CHANCE)),
    )
