import pytest

from services.text.language import Language, language_of


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["我住在大理。"], "zh"),
        (["我用 Python 写代码"], "zh"),
        (["帮我看 the train to Dali"], "zh"),
        (["Please translate 你好 into English for my friend over there"], "en"),
        (["My cat is called 咪咪, and she sleeps all day"], "en"),
        (["1234 !? 🎬"], "en"),
        (["hello there", "你好，我叫小明，住在大理"], "zh"),
        ([], "en"),
    ],
)
def test_language(texts: list[str], language: Language) -> None:
    assert language_of(texts) == language
    assert language_of(text for text in texts) == language
