import pytest

from services.time_reference.numerals import chinese_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("两", 2),
        ("十二", 12),
        ("二十三", 23),
        ("廿三", 23),
        ("一百零五", 105),
        ("两千零四", 2004),
        ("三千二", 3200),
        ("一百五", 150),
        ("二〇二三", 2023),
        ("七八", -1),
        ("十百", -1),
        ("二三十", -1),
        ("", -1),
    ],
)
def test_chinese_numbers_are_read(text: str, expected: int) -> None:
    assert chinese_number(text) == expected
