import numpy as np
import pytest

from services.search.embedding_quality import measured, probe_texts
from tests.support.lexical_embeddings import LexicalEmbeddings


def _understanding(texts: list[str], share: float = 1.0) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Vectors that put a share of the sentences beside their paraphrases."""
    vectors = np.random.default_rng(7).normal(size=(len(texts), 64))
    for at in range(0, round(len(texts) * share), 3):
        vectors[at + 1] = vectors[at] + 0.1 * vectors[at + 1]
    return vectors


def test_an_embedding_that_understands_both_languages_is_trusted_with_both() -> None:
    found = measured(_understanding(probe_texts()))
    assert {language: each.quality for language, each in found.items()} == {"en": 1.0, "zh": 1.0}


def test_one_that_understands_english_alone_is_trusted_with_english_alone() -> None:
    found = measured(_understanding(probe_texts(), share=0.5))
    assert found["en"].quality == 1.0
    assert found["zh"].quality == 0.1
    assert 0.0 < found["en"].cosine_floor < 0.5


def test_words_in_common_are_not_taken_for_understanding() -> None:
    found = measured(LexicalEmbeddings().embed_documents(probe_texts()))
    assert all(each.quality < 0.2 for each in found.values())


@pytest.mark.parametrize("vectors", [[], [[1.0, 2.0]], np.full((len(probe_texts()), 4), np.nan)])
def test_vectors_that_cannot_be_measured_are_refused(vectors: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="one finite vector"):
        measured(vectors)
