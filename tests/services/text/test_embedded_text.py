"""What of a message is embedded."""

import pytest

from services.text.tokenizer import embedded_text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("role", "speaker", "text", "embedded"),
    [
        ("user", None, "tea " * 100, "tea " * 100),
        ("assistant", None, "tea " * 100, "tea " * 60),
        ("assistant", None, "茶" * 100, "茶" * 80),
        ("assistant", "Mel", "tea " * 100, "Mel: " + "tea " * 100),
    ],
)
def test_of_an_answer_the_beginning(role: str, speaker: str | None, text: str, embedded: str) -> None:
    assert embedded_text(role, speaker, text) == embedded
