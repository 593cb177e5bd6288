import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.text.language import SEMICOLONS, Language, language_of, sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Pi is 3.14. See example.org! Really?", ["Pi is 3.14. ", "See example.org! ", "Really?"]),
        ("今天下雨了。你带伞了吗？\n带了", ["今天下雨了。", "你带伞了吗？\n", "带了"]),
        ("One line\nanother", ["One line\n", "another"]),
        ("Well... yes", ["Well... ", "yes"]),
        ("I see Dr. Abadi, e.g. today. Bye", ["I see Dr. Abadi, e.g. today. ", "Bye"]),
        ("", []),
    ],
)
def test_a_sentence_ends_at_its_mark_and_no_figure_is_cut(text: str, parts: list[str]) -> None:
    assert [sentence.text for sentence in sentences(text)] == parts


def test_semicolons_end_a_sentence_where_that_is_asked_for() -> None:
    assert len(sentences("He left; she stayed.")) == 1
    assert [part.text for part in sentences("他走了；她留下。", SEMICOLONS)] == ["他走了；", "她留下。"]


def test_a_question_mark_makes_a_question() -> None:
    assert [part.asks for part in sentences("Is it? It is. 是吗？！")] == [True, False, True]


@given(st.text(alphabet="a 。.?!;；\n…中1", max_size=40))
def test_sentences_together_are_the_text(text: str) -> None:
    parts = sentences(text)
    assert "".join(part.text for part in parts) == text
    assert all(text[part.start : part.end] == part.text for part in parts)


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
