import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.token_estimates import count_tokens


def test_empty_text_has_no_tokens() -> None:
    assert count_tokens("") == 0


@given(st.text(min_size=1))
def test_any_other_text_has_tokens_and_no_more_than_a_little_over_one_a_character(text: str) -> None:
    assert 1 <= count_tokens(text) <= len(text) + 1


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer(text: str, more: str) -> None:
    assert count_tokens(text + more) >= count_tokens(text)


@given(st.text(), st.text())
def test_parts_count_about_as_much_as_the_whole(one: str, other: str) -> None:
    assert abs(count_tokens(one) + count_tokens(other) - count_tokens(one + other)) <= 3


def test_chinese_takes_more_tokens_a_character_than_english() -> None:
    assert count_tokens("今天的天气非常好我们去公园散步吧") > 2 * count_tokens("The weather is f")


@pytest.mark.parametrize("text", ["今天天气很好", "こんにちは", "안녕하세요", "，。！？", "ＡＢＣＤ", "𠀀𠀁𠀂"])
def test_cjk_scripts_and_full_width_forms_count_alike(text: str) -> None:
    assert count_tokens(text) == round(len(text) * 0.75) + 1


@pytest.mark.parametrize(
    ("text", "real"),
    [
        # As o200k_base counts them.
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("Please remember that I am allergic to peanuts and that my flight leaves on Friday.", 16),
    ],
)
def test_estimate_of_english_is_near(text: str, real: int) -> None:
    assert real * 0.6 <= count_tokens(text) <= real * 1.6


def test_one_accent_does_not_make_a_text_chinese() -> None:
    assert count_tokens("cafe " * 40) == count_tokens("café " * 40)
