import pytest

from services.text.compare import are_equal, compare


@pytest.mark.parametrize(
    ("one", "other", "cosine", "expected"),
    [
        ("I have a dog.", "i have a DOG", None, "same"),
        ("我住在上海。", "我住在上海", 0.1, "same"),
        ("The rent is 900 euros.", "The rent is 950 euros.", 0.9, "newer"),
        ("I live in Oslo.", "I live in Bergen.", 0.9, "newer"),
        ("I eat meat.", "I do not eat meat.", 0.9, "contradicts"),
        ("我吃肉", "我不吃肉", 0.9, "contradicts"),
        ("The rent is 900 euros.", "The rent is 950 euros.", None, "apart"),
        ("I live in Oslo.", "My dog is called Bruno.", 0.2, "apart"),
    ],
)
def test_how_a_later_text_relates_to_an_earlier_one(
    one: str, other: str, cosine: float | None, expected: str
) -> None:
    assert compare(one, other, cosine) == expected


def test_texts_without_words_are_equal_only_to_such() -> None:
    assert are_equal("…", "?!")
    assert not are_equal("…", "a")
