"""Keys, tokens, cards and identity numbers are left out of texts, and nothing else is."""

from services.text.secrets import Secrets, without_secrets
from tests.support.secret_values import planted

ORDINARY = (
    "Call me at 2026-11-26 10:00, or at +86 138 0013 8000; my order is 4929-11.",
    "The order number is 1234567890123456, the flight CZ3101, the room 4111.",
    "我的手机号是13800138000，快递单号是773012345678901，邮编100020。",
    "ISBN 978-7-111-40701-0, 12,345,678,901,234.56 yuan, version 1.2.3-4567-8901",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it",
    "https://example.org:8080/path?q=1 and mailto:ada@example.org",
)


def test_a_secret_is_left_out() -> None:
    for each in planted(300):
        left = without_secrets(each.sentence)
        assert each.secret not in left
        for line in each.secret.splitlines():
            assert line not in left
        before, after = each.sentence.split(each.secret)
        assert left.startswith(before)
        assert left.endswith(after)
        assert "left out]" in left


def test_ordinary_text_stays() -> None:
    assert [without_secrets(text) for text in ORDINARY] == list(ORDINARY)


def test_check_digits_decide() -> None:
    assert without_secrets("4111 1111 1111 1111") == "[card number left out]"
    assert without_secrets("4111 1111 1111 1112") == "4111 1111 1111 1112"
    assert without_secrets("11010519491231002X") == "[identity number left out]"
    assert without_secrets("110105194912310021") == "110105194912310021"
    assert without_secrets("536-22-1234, 900-22-1234") == "[identity number left out], 900-22-1234"


def test_all_texts_of_a_value_are_looked_at_and_a_setting_allows_them() -> None:
    value = {"cards": ["4111111111111111"], "n": 4111111111111111, "none": None}
    assert Secrets().without_in(value) == {
        "cards": ["[card number left out]"],
        "n": 4111111111111111,
        "none": None,
    }
    assert Secrets(are_kept=True).without_in(value) == value
