import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.text.lexical import LexicalEmbeddings, words

EMBEDDINGS = LexicalEmbeddings()


def similarity(one: str, other: str) -> float:
    """The cosine of the two texts' vectors."""
    pairs = zip(EMBEDDINGS.embed_query(one), EMBEDDINGS.embed_query(other), strict=True)
    return sum(a * b for a, b in pairs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Train leaves at 9", ["train", "leaves", "9"]),
        ("don't", ["don't"]),
        ("我喜欢喝茶", ["我喜", "喜欢", "欢喝", "喝茶"]),
        ("茶", ["茶"]),
        ("我", []),
        ("买iPhone手机", ["买", "iphone", "手机"]),
        ("ＡＢＣ１２３", ["abc123"]),
        ("ｈｅｌｌｏ，世界！", ["hello", "世界"]),
        ("", []),
        ("？！… 👩‍🚀", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(), st.integers(2, 300))
def test_vector_has_length_one_or_is_zero(text: str, dimensions: int) -> None:
    vector = LexicalEmbeddings(dimensions).embed_query(text)

    assert len(vector) == dimensions
    length = math.sqrt(sum(value * value for value in vector))
    assert length == pytest.approx(1, abs=1e-5) or not any(vector)


@given(st.text())
def test_vector_is_always_the_same(text: str) -> None:
    assert EMBEDDINGS.embed_query(text) == LexicalEmbeddings(2048).embed_query(text)


def test_vector_is_the_same_in_another_process() -> None:
    code = (
        "from services.text.lexical import LexicalEmbeddings\n"
        "print(LexicalEmbeddings(64).embed_query('我喜欢 travelling 喝茶'))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    ).stdout

    assert printed.strip() == str(LexicalEmbeddings(64).embed_query("我喜欢 travelling 喝茶"))


@pytest.mark.parametrize("text", ["", "   ", "？！", "the of 的"])
def test_text_without_a_word_is_zero(text: str) -> None:
    assert EMBEDDINGS.embed_query(text) == [0.0] * 2048


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("I love travelling", "travel is what I love", "the invoice was paid twice"),
        ("allergic to peanuts", "a peanut allergy", "the train to Berlin"),
        ("我对花生过敏", "花生过敏的人", "明天去上海开会"),
        ("我喜欢喝绿茶", "他每天喝茶", "火车晚点了两个小时"),
        ("会议在３号楼", "3号楼的会议室", "晚饭吃面条"),
        ("ＷＩＦＩ password", "wifi password", "grocery list"),
    ],
)
def test_similar_texts_are_closer(text: str, near: str, far: str) -> None:
    assert similarity(text, near) > similarity(text, far) + 0.1


def test_word_order_case_and_width_make_no_difference() -> None:
    assert EMBEDDINGS.embed_query("Green Tea") == EMBEDDINGS.embed_query("ｔｅａ　ｇｒｅｅｎ")


def test_documents_are_embedded_one_by_one() -> None:
    texts = ["green tea", "", "绿茶"]

    assert EMBEDDINGS.embed_documents(texts) == [EMBEDDINGS.embed_query(text) for text in texts]
