import pytest

from services.text.language import Language, language_of


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["我住在大理。"], "zh"),
        (["好"], "zh"),
        (["𠮷 no 㐂 in it"], "en"),
        (["我用 Python 写代码"], "zh"),
        (["帮我看 the train to Dali"], "zh"),
        (["Please translate 你好 into English for my friend over there"], "en"),
        (["My cat is called 咪咪, and she sleeps all day"], "en"),
        (["When does the train leave?"], "en"),
        (["Où est la gare ?", "Straße"], "en"),
        (["1234 !? 🎬"], "en"),
        (["hello there", "你好，我叫小明，住在大理"], "zh"),
        ([""], "en"),
        ([], "en"),
    ],
)
def test_language(texts: list[str], language: Language) -> None:
    assert language_of(texts) == language
    assert language_of(text for text in texts) == language


def test_half_as_many_characters_as_words_are_chinese() -> None:
    assert language_of(["猫 one two"]) == "zh"
    assert language_of(["猫 one two three"]) == "en"
