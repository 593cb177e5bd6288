import numpy as np
import pytest

from services.text.tokenizer import terms
from services.text.word_vectors import word_vectors


def nearness(one: str, other: str) -> float:
    vectors = word_vectors()
    rows = vectors.rows([terms(one)[0] if one.isascii() else one, terms(other)[0] if other.isascii() else other])
    assert (rows >= 0).all()
    first, second = vectors.at(rows)
    return float(first @ second)


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [("physician", "doctor", "guitar"), ("医生", "大夫", "足球"), ("sister", "姐姐", "car")],
)
def test_words_of_about_the_same_are_nearer_than_others(word: str, near: str, far: str) -> None:
    assert nearness(word, near) > nearness(word, far) + 0.3


def test_what_is_not_known_has_no_row_and_vectors_have_length_one() -> None:
    vectors = word_vectors()
    assert vectors.rows(["qzxv", "doctor"]).tolist()[0] == -1
    assert np.linalg.norm(vectors.at(vectors.rows(["doctor"])), axis=1) == pytest.approx([1.0])
    assert vectors.at(vectors.rows([])).shape[0] == 0
