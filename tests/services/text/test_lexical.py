import pytest

from services.text.lexical import words


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
